// KEDA's RabbitMQ scaler, as it is, asks the broker in each of its modes; it is compiled beside this file.
// Prints `ok NAME` or `FAILED NAME: why`. BROKER_URL and BROKER_API say where the broker is.
package scalers

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
)

const (
	// RabbitMQ's counts and rates are up to five seconds old.
	patience = 20 * time.Second
	virtual  = "keda/vhost"
	odd      = "odd/name&more"
)

type settings map[string]string

var (
	brokerURL = os.Getenv("BROKER_URL")
	apiURL    = strings.TrimSuffix(os.Getenv("BROKER_API"), "/api/")
)

func (given settings) with(more settings) settings {
	all := settings{}
	for _, part := range []settings{given, more} {
		for key, value := range part {
			all[key] = value
		}
	}
	return all
}

// ask makes a scaler of these settings and returns the metric, in thousandths, and whether it is active.
func ask(trigger, auth settings) (int64, bool, error) {
	scaler, err := NewRabbitMQScaler(&scalersconfig.ScalerConfig{
		TriggerMetadata: trigger, AuthParams: auth, GlobalHTTPTimeout: 5 * time.Second,
	})
	if err != nil {
		return 0, false, err
	}
	defer scaler.Close(context.Background())
	values, active, err := scaler.GetMetricsAndActivity(context.Background(), "metric")
	if err != nil {
		return 0, false, err
	}
	return values[0].Value.MilliValue(), active, nil
}

// wants asks until the metric is as it has to be.
func wants(name string, trigger, auth settings, right func(milli int64, active bool) bool) {
	var milli int64
	var active bool
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if milli, active, err = ask(trigger, auth); err == nil && right(milli, active) {
			fmt.Println("ok", name)
			return
		}
	}
	fmt.Printf("FAILED %s: %d thousandths, active %v, error %v\n", name, milli, active, err)
}

// refused wants an error with a text in it, and no password.
func refused(name string, trigger, auth settings, text string) {
	_, _, err := ask(trigger, auth)
	if err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "wrong-word") {
		fmt.Printf("FAILED %s: %v\n", name, err)
		return
	}
	fmt.Println("ok", name)
}

func is(count int64) func(int64, bool) bool {
	return func(milli int64, active bool) bool { return milli == 1000*count && active == (count > 0) }
}

func isPositive(milli int64, active bool) bool { return milli > 0 && active }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func put(path string) {
	request, err := http.NewRequest(http.MethodPut, apiURL+"/api/"+path,
		strings.NewReader(`{"configure":".*","write":".*","read":".*"}`))
	must(err)
	answer, err := http.DefaultClient.Do(request)
	must(err)
	answer.Body.Close()
}

func open(vhost string) *amqp.Channel {
	address, err := amqp.ParseURI(brokerURL)
	must(err)
	address.Vhost = vhost
	connection, err := amqp.Dial(address.String())
	must(err)
	channel, err := connection.Channel()
	must(err)
	return channel
}

func fill(channel *amqp.Channel, queue string, count int) {
	_, err := channel.QueueDeclare(queue, true, false, false, false, nil)
	must(err)
	for range count {
		must(channel.Publish("", queue, false, false, amqp.Publishing{Body: []byte("x")}))
	}
}

func TestPaths(t *testing.T) {
	put("vhosts/" + url.PathEscape(virtual))
	put("permissions/" + url.PathEscape(virtual) + "/guest")
	channel, other := open("/"), open(virtual)
	fill(channel, "keda.many", 7)
	fill(channel, "keda.few", 1)
	fill(channel, "keda.empty", 0)
	fill(channel, odd, 2)
	fill(other, "elsewhere", 3)
	for range 2 {
		_, _, err := channel.Get("keda.many", false)
		must(err)
	}
	lengths(settings{"mode": "QueueLength", "value": "5"})
	rates(channel)
	refusals(settings{"mode": "QueueLength", "value": "5"})
}

func lengths(base settings) {
	http := settings{"host": apiURL}
	overAMQP := settings{"host": brokerURL}
	many := base.with(settings{"queueName": "keda.many"})
	wants("length over HTTP, with unacknowledged messages", many, http, is(7))
	wants("length over HTTP, without them", many.with(settings{"excludeUnacknowledged": "true"}), http, is(5))
	wants("length over AMQP", many, overAMQP, is(5))
	wants("an empty queue is not active", base.with(settings{"queueName": "keda.empty"}), http, is(0))
	wants("the same over AMQP", base.with(settings{"queueName": "keda.empty"}), overAMQP, is(0))
	wants("not active up to the activation value", many.with(settings{"activationValue": "7"}), http,
		func(milli int64, active bool) bool { return milli == 7000 && !active })
	wants("no mode: the length", settings{"queueName": "keda.many"}, http, is(7))
	wants("queueLength of old", settings{"queueName": "keda.many", "queueLength": "5"}, http, is(7))
	elsewhere := base.with(settings{"queueName": "elsewhere", "vhostName": virtual})
	wants("another vhost over HTTP", elsewhere, http, is(3))
	wants("another vhost over AMQP", elsewhere, overAMQP, is(3))
	wants("another vhost in the address", base.with(settings{"queueName": "elsewhere"}),
		settings{"host": apiURL + "/" + url.PathEscape(virtual)}, is(3))
	bare, err := url.Parse(apiURL)
	must(err)
	bare.User = nil
	wants("user and password by themselves", many,
		settings{"host": bare.String(), "username": "guest", "password": "guest"}, is(7))
	strange := base.with(settings{"queueName": odd})
	wants("a name with a slash and an ampersand, over AMQP", strange, overAMQP, is(2))
	wants("a name with a slash and an ampersand, over HTTP", strange, http, is(2))
	regex := base.with(settings{"queueName": "^keda\\..*", "useRegex": "true"})
	wants("an expression: the sum", regex, http, is(8))
	wants("an expression: the largest", regex.with(settings{"operation": "max"}), http, is(7))
	wants("an expression: the mean", regex.with(settings{"operation": "avg"}), http, is(2))
	wants("an expression: ready ones only", regex.with(settings{"excludeUnacknowledged": "true"}), http, is(6))
	wants("an expression that nothing matches", base.with(settings{"queueName": "^none$", "useRegex": "true"}), http, is(0))
	refused("an expression with more queues than a page", regex.with(settings{"pageSize": "2"}), http, "more queues")
}

func rates(channel *amqp.Channel) {
	fill(channel, "keda.busy", 5)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				fill(channel, "keda.busy", 1)
				_, _, err := channel.Get("keda.busy", true)
				must(err)
			}
		}
	}()
	modes := []string{"MessageRate", "DeliverGetRate", "PublishedToDeliveredRatio", "ExpectedQueueConsumptionTime"}
	for _, mode := range modes {
		trigger := settings{"mode": mode, "value": "1", "queueName": "keda.busy"}
		wants(mode, trigger, settings{"host": apiURL}, isPositive)
		trigger["queueName"], trigger["useRegex"] = "^keda\\.busy$", "true"
		wants(mode+" by an expression", trigger, settings{"host": apiURL}, isPositive)
	}
	close(stop)
	<-done
}

func refusals(base settings) {
	missing := base.with(settings{"queueName": "keda.missing"})
	refused("no such queue over HTTP", missing, settings{"host": apiURL}, "404")
	refused("no such queue over AMQP", missing, settings{"host": brokerURL}, "404")
	stranger := settings{"username": "guest", "password": "wrong-word"}
	refused("a wrong password over HTTP", missing, stranger.with(settings{"host": apiURL}), "401")
	refused("a wrong password over AMQP", missing, stranger.with(settings{"host": brokerURL}), "403")
	gone := missing.with(settings{"vhostName": "nowhere"})
	refused("no such vhost over HTTP", gone, settings{"host": apiURL}, "404")
	refused("no such vhost over AMQP", gone, settings{"host": brokerURL}, "403")
}
