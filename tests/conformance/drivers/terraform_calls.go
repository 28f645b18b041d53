// The calls of Terraform's RabbitMQ provider (1.10), by the client library that it uses: what each resource's
// create, read, update, delete and import ask, in that order, and that nothing is left to plan after each.
// Prints `ok NAME` or `FAILED NAME: why`. BROKER_API says where the broker is.
package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v3"
)

type arguments = map[string]any

const home, vhost = "/", "terraform/vhost"

// resource is one of the provider's: `states` are put one after the other, `read` tells what the provider sees.
type resource struct {
	name   string
	states []any
	put    func(state any) (*http.Response, error)
	read   func() (any, error)
	remove func() (*http.Response, error)
}

func say(name string, err error) {
	if err != nil {
		fmt.Printf("FAILED %s: %s\n", name, strings.ReplaceAll(err.Error(), "\n", " "))
		return
	}
	fmt.Println("ok", name)
}

func answered(answer *http.Response, err error) error {
	if err == nil && answer != nil && answer.StatusCode >= 400 {
		err = errors.New(answer.Status)
	}
	return err
}

// isGone says whether the provider would take the object off its state.
func isGone(err error) bool {
	var told rabbithole.ErrorResponse
	return errors.As(err, &told) && told.StatusCode == 404
}

func (one resource) walk() {
	for at, state := range one.states {
		name := fmt.Sprintf("%s, state %d", one.name, at+1)
		say(name+" is put", answered(one.put(state)))
		say(name+" is read", one.compare(state))
		say(name+" is put again", answered(one.put(state)))
		say(name+" is the same", one.compare(state))
	}
	say(one.name+" is deleted", answered(one.remove()))
	if _, err := one.read(); !isGone(err) {
		say(one.name+" is gone", fmt.Errorf("read answers %v", err))
	} else {
		say(one.name+" is gone", nil)
	}
	answer, err := one.remove()
	if isGone(err) || err == nil && answer.StatusCode == 404 {
		err = nil
	} else if err == nil {
		err = errors.New(answer.Status)
	}
	say(one.name+" is deleted a second time", err)
}

func (one resource) compare(state any) error {
	seen, err := one.read()
	if err == nil && !reflect.DeepEqual(seen, state) {
		err = fmt.Errorf("%#v instead of %#v", seen, state)
	}
	return err
}

type vhostState struct {
	rabbithole.VhostSettings
	limits rabbithole.VhostLimitsValues
}

func vhosts(client *rabbithole.Client) resource {
	name := "terraform/another"
	return resource{
		name: "vhost",
		states: []any{
			vhostState{rabbithole.VhostSettings{Description: "first"}, rabbithole.VhostLimitsValues{}},
			vhostState{rabbithole.VhostSettings{Description: "second", Tracing: true},
				rabbithole.VhostLimitsValues{"max-connections": 10, "max-queues": 20}},
			vhostState{rabbithole.VhostSettings{Description: "third"}, rabbithole.VhostLimitsValues{"max-queues": 5}},
			vhostState{rabbithole.VhostSettings{}, rabbithole.VhostLimitsValues{}},
		},
		put: func(state any) (*http.Response, error) {
			wanted := state.(vhostState)
			if answer, err := client.PutVhost(name, wanted.VhostSettings); err != nil {
				return answer, err
			}
			limits := rabbithole.VhostLimits{"max-connections", "max-queues"}
			if answer, err := client.DeleteVhostLimits(name, limits); err != nil {
				return answer, err
			}
			return client.PutVhostLimits(name, wanted.limits)
		},
		read: func() (any, error) {
			seen, err := client.GetVhost(name)
			if err != nil {
				return nil, err
			}
			limits := rabbithole.VhostLimitsValues{}
			rows, err := client.GetVhostLimits(name)
			if len(rows) > 0 {
				limits = rows[0].Value
			}
			settings := rabbithole.VhostSettings{Description: seen.Description, Tracing: seen.Tracing}
			return vhostState{settings, limits}, err
		},
		remove: func() (*http.Response, error) { return client.DeleteVhost(name) },
	}
}

func users(client *rabbithole.Client) resource {
	return resource{
		name: "user",
		states: []any{
			rabbithole.UserTags{"administrator", "management"},
			rabbithole.UserTags{"management"},
			rabbithole.UserTags{},
		},
		put: func(state any) (*http.Response, error) {
			return client.PutUser("walker", rabbithole.UserSettings{Password: "p", Tags: state.(rabbithole.UserTags)})
		},
		read: func() (any, error) {
			user, err := client.GetUser("walker")
			if err != nil {
				return nil, err
			}
			tags := rabbithole.UserTags{}
			for _, tag := range user.Tags {
				if tag != "" {
					tags = append(tags, tag)
				}
			}
			return tags, nil
		},
		remove: func() (*http.Response, error) { return client.DeleteUser("walker") },
	}
}

func permissions(client *rabbithole.Client) resource {
	return resource{
		name: "permissions",
		states: []any{
			rabbithole.Permissions{Configure: ".*", Write: ".*", Read: ".*"},
			rabbithole.Permissions{Configure: "", Write: "^a/b$", Read: "é"},
		},
		put: func(state any) (*http.Response, error) {
			return client.UpdatePermissionsIn(vhost, "mctest", state.(rabbithole.Permissions))
		},
		read: func() (any, error) {
			seen, err := client.GetPermissionsIn(vhost, "mctest")
			return rabbithole.Permissions{Configure: seen.Configure, Write: seen.Write, Read: seen.Read}, err
		},
		remove: func() (*http.Response, error) { return client.ClearPermissionsIn(vhost, "mctest") },
	}
}

func topicPermissions(client *rabbithole.Client) resource {
	return resource{
		name: "topic permissions",
		states: []any{
			rabbithole.TopicPermissions{Exchange: "amq.topic", Write: ".*", Read: ".*"},
			rabbithole.TopicPermissions{Exchange: "amq.topic", Write: "^{vhost}-.*", Read: ""},
		},
		put: func(state any) (*http.Response, error) {
			if answer, err := client.ClearTopicPermissionsIn(vhost, "mctest"); err != nil && !isGone(err) {
				return answer, err
			}
			return client.UpdateTopicPermissionsIn(vhost, "mctest", state.(rabbithole.TopicPermissions))
		},
		read: func() (any, error) {
			seen, err := client.GetTopicPermissionsIn(vhost, "mctest")
			if err != nil {
				return nil, err
			}
			if len(seen) != 1 {
				return nil, fmt.Errorf("%d rows", len(seen))
			}
			return rabbithole.TopicPermissions{Exchange: seen[0].Exchange, Write: seen[0].Write, Read: seen[0].Read}, nil
		},
		remove: func() (*http.Response, error) { return client.ClearTopicPermissionsIn(vhost, "mctest") },
	}
}

func exchange(client *rabbithole.Client, state rabbithole.ExchangeSettings) resource {
	name := "exchange " + state.Type + "/1"
	return resource{
		name:   name,
		states: []any{state},
		put: func(state any) (*http.Response, error) {
			return client.DeclareExchange(vhost, name, state.(rabbithole.ExchangeSettings))
		},
		read: func() (any, error) {
			seen, err := client.GetExchange(vhost, name)
			if err != nil {
				return nil, err
			}
			return rabbithole.ExchangeSettings{
				Type: seen.Type, Durable: seen.Durable, AutoDelete: bool(seen.AutoDelete), Arguments: seen.Arguments,
			}, nil
		},
		remove: func() (*http.Response, error) { return client.DeleteExchange(vhost, name) },
	}
}

func queue(client *rabbithole.Client, name string, state rabbithole.QueueSettings) resource {
	return resource{
		name:   "queue " + name,
		states: []any{state},
		put: func(state any) (*http.Response, error) {
			return client.DeclareQueue(vhost, name, state.(rabbithole.QueueSettings))
		},
		read: func() (any, error) {
			seen, err := client.GetQueue(vhost, name)
			if err != nil {
				return nil, err
			}
			return rabbithole.QueueSettings{
				Durable: seen.Durable, AutoDelete: bool(seen.AutoDelete), Arguments: seen.Arguments,
			}, nil
		},
		remove: func() (*http.Response, error) { return client.DeleteQueue(vhost, name) },
	}
}

func binding(client *rabbithole.Client, kind, destination, key string, given arguments) resource {
	wanted := rabbithole.BindingInfo{
		Source: "amq.headers", Destination: destination, DestinationType: kind, RoutingKey: key, Arguments: given,
	}
	properties := "not put yet"
	list := client.ListQueueBindingsBetween
	if kind == "exchange" {
		list = client.ListExchangeBindingsBetween
	}
	return resource{
		name:   fmt.Sprintf("binding of the %s %s by %q %v", kind, destination, key, given),
		states: []any{wanted},
		put: func(any) (*http.Response, error) {
			answer, err := client.DeclareBinding(vhost, wanted)
			if err == nil {
				location := strings.Split(answer.Header.Get("Location"), "/")
				properties, err = url.PathUnescape(location[len(location)-1])
			}
			return answer, err
		},
		read: func() (any, error) {
			found, err := list(vhost, "amq.headers", destination)
			for _, one := range found {
				if one.PropertiesKey == properties {
					one.PropertiesKey, one.Vhost = "", ""
					return one, err
				}
			}
			if err == nil {
				err = rabbithole.ErrorResponse{StatusCode: 404}
			}
			return nil, err
		},
		remove: func() (*http.Response, error) {
			gone := wanted
			gone.Vhost, gone.PropertiesKey = vhost, properties
			return client.DeleteBinding(vhost, gone)
		},
	}
}

func policies(client *rabbithole.Client) resource {
	state := func(pattern string, priority int, to string, definition rabbithole.PolicyDefinition) rabbithole.Policy {
		return rabbithole.Policy{
			Vhost: vhost, Name: "limits/1", Pattern: pattern, Priority: priority, ApplyTo: to, Definition: definition,
		}
	}
	return resource{
		name: "policy",
		states: []any{
			state(".*", 0, "all", rabbithole.PolicyDefinition{"max-length": 10.0, "overflow": "reject-publish"}),
			state("^a/b$", 5, "queues", rabbithole.PolicyDefinition{"message-ttl": 60000.0, "dead-letter-exchange": ""}),
			state("^x", -1, "exchanges", rabbithole.PolicyDefinition{"alternate-exchange": "amq.fanout"}),
		},
		put: func(state any) (*http.Response, error) {
			return client.PutPolicy(vhost, "limits/1", state.(rabbithole.Policy))
		},
		read: func() (any, error) {
			seen, err := client.GetPolicy(vhost, "limits/1")
			if err != nil {
				return nil, err
			}
			return *seen, nil
		},
		remove: func() (*http.Response, error) { return client.DeletePolicy(vhost, "limits/1") },
	}
}

func operatorPolicies(client *rabbithole.Client) resource {
	state := func(priority int, definition rabbithole.PolicyDefinition) rabbithole.OperatorPolicy {
		return rabbithole.OperatorPolicy{
			Vhost: vhost, Name: "bound", Pattern: ".*", Priority: priority, ApplyTo: "queues", Definition: definition,
		}
	}
	return resource{
		name: "operator policy",
		states: []any{
			state(0, rabbithole.PolicyDefinition{"max-length": 1000.0, "message-ttl": 5000.0}),
			state(7, rabbithole.PolicyDefinition{"expires": 3600000.0}),
		},
		put: func(state any) (*http.Response, error) {
			return client.PutOperatorPolicy(vhost, "bound", state.(rabbithole.OperatorPolicy))
		},
		read: func() (any, error) {
			seen, err := client.GetOperatorPolicy(vhost, "bound")
			if err != nil {
				return nil, err
			}
			return *seen, nil
		},
		remove: func() (*http.Response, error) { return client.DeleteOperatorPolicy(vhost, "bound") },
	}
}

func login(client *rabbithole.Client, address string) {
	for _, password := range []string{"first", "second"} {
		settings := rabbithole.UserSettings{Password: password, Tags: rabbithole.UserTags{"management"}}
		say("password "+password+" is put", answered(client.PutUser("mctest", settings)))
		other, err := rabbithole.NewClient(address, "mctest", password)
		if err == nil {
			_, err = other.Whoami()
		}
		say("password "+password+" lets in", err)
	}
	overview, err := client.Overview()
	if err == nil && overview.RabbitMQVersion == "" {
		err = errors.New("no version")
	}
	say("the version is read", err)
}

func main() {
	api, err := url.Parse(os.Getenv("BROKER_API"))
	if err != nil {
		panic(err)
	}
	address := "http://" + api.Host
	password, _ := api.User.Password()
	client, err := rabbithole.NewClient(address, api.User.Username(), password)
	if err != nil {
		panic(err)
	}
	login(client, address)
	say("a vhost for all", answered(client.PutVhost(vhost, rabbithole.VhostSettings{})))
	own := rabbithole.Permissions{Configure: ".*", Write: ".*", Read: ".*"}
	say("rights in it", answered(client.UpdatePermissionsIn(vhost, api.User.Username(), own)))
	vhosts(client).walk()
	users(client).walk()
	permissions(client).walk()
	topicPermissions(client).walk()
	for _, kind := range []string{"direct", "fanout", "topic", "headers"} {
		given := arguments{"alternate-exchange": "amq.fanout"}
		exchange(client, rabbithole.ExchangeSettings{Type: kind, Durable: true, Arguments: given}).walk()
	}
	exchange(client, rabbithole.ExchangeSettings{Type: "topic", AutoDelete: true, Arguments: arguments{}}).walk()
	queue(client, "plain", rabbithole.QueueSettings{Durable: true, Arguments: arguments{}}).walk()
	queue(client, "a name/é %2F", rabbithole.QueueSettings{AutoDelete: true, Arguments: arguments{}}).walk()
	queue(client, "limited", rabbithole.QueueSettings{Durable: true, Arguments: arguments{
		"x-message-ttl": 5000.0, "x-max-length": 3.0, "x-overflow": "reject-publish",
		"x-dead-letter-exchange": "", "x-single-active-consumer": true, "x-max-priority": 5.0,
	}}).walk()
	say("a queue to bind", answered(client.DeclareQueue(vhost, "bound/queue", rabbithole.QueueSettings{Durable: true})))
	for _, key := range []string{"", "#", "a key/é~", "%23"} {
		binding(client, "queue", "bound/queue", key, arguments{}).walk()
		binding(client, "exchange", "amq.topic", key, arguments{}).walk()
	}
	binding(client, "queue", "bound/queue", "k", arguments{"x-match": "any", "n": 1.0, "flag": true}).walk()
	binding(client, "exchange", "amq.topic", "k", arguments{"x-match": "all", "text": "é"}).walk()
	policies(client).walk()
	operatorPolicies(client).walk()
	say("the vhost goes", answered(client.DeleteVhost(vhost)))
}
