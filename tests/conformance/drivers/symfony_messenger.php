<?php
// Symfony Messenger's AMQP transport over the php-amqp extension: symfony_messenger.php HOST PORT.
// Prints `ok NAME` or `FAILED NAME ...` a check.
require 'Symfony/Component/Messenger/autoload.php';
require 'Symfony/Component/Messenger/Bridge/Amqp/autoload.php';

use Symfony\Component\Messenger\Bridge\Amqp\Transport\AmqpReceiver;
use Symfony\Component\Messenger\Bridge\Amqp\Transport\AmqpSender;
use Symfony\Component\Messenger\Bridge\Amqp\Transport\AmqpStamp;
use Symfony\Component\Messenger\Bridge\Amqp\Transport\Connection;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;

class Order { public function __construct(public int $number) {} }

function check(string $name, callable $what): void
{
    try {
        $said = $what();
        echo $said === true ? "ok $name\n" : "FAILED $name: ".json_encode($said)."\n";
    } catch (\Throwable $error) {
        echo "FAILED $name: ".get_class($error).': '.strtok($error->getMessage(), "\n")."\n";
    }
}

function connection(array $options = []): Connection
{
    [, $host, $port] = $GLOBALS['argv'];
    return Connection::fromDsn("amqp://guest:guest@$host:$port/%2f/messenger", $options);
}

function received(AmqpReceiver $receiver, int $wanted, float $seconds = 60): array
{
    $found = [];
    $end = microtime(true) + $seconds;
    while (count($found) < $wanted && microtime(true) < $end) {
        foreach ($receiver->get() as $envelope) {
            $found[] = $envelope;
        }
        usleep(20000);
    }
    return $found;
}

$serializer = new PhpSerializer();
$options = [
    'exchange' => ['name' => 'messenger', 'type' => 'topic'],
    'queues' => ['orders' => ['binding_keys' => ['order.#'], 'arguments' => ['x-max-priority' => 5]]],
    'confirm_timeout' => 60,
];
$connection = connection($options);
$sender = new AmqpSender($connection, $serializer);
$receiver = new AmqpReceiver($connection, $serializer);
$numbers = fn (array $envelopes) => array_map(fn ($each) => $each->getMessage()->number, $envelopes);

check('setup declares exchange, queue and binding', function () use ($connection) {
    $connection->setup();
    return $connection->countMessagesInQueues() === 0;
});
check('a message is sent, confirmed and acknowledged', function () use ($sender, $receiver, $connection) {
    $sender->send(new Envelope(new Order(1), [new AmqpStamp('order.new')]));
    $found = received($receiver, 1);
    $receiver->ack($found[0]);
    return $found[0]->getMessage()->number === 1 && $connection->countMessagesInQueues() === 0;
});
check('fifty come in order', function () use ($sender, $receiver, $numbers) {
    foreach (range(1, 50) as $number) {
        $sender->send(new Envelope(new Order($number), [new AmqpStamp('order.new')]));
    }
    $found = received($receiver, 50);
    array_map([$receiver, 'ack'], $found);
    return $numbers($found) === range(1, 50) ?: $numbers($found);
});
check('a higher priority comes first', function () use ($sender, $receiver, $numbers) {
    foreach ([1, 5, 3] as $priority) {
        $stamp = new AmqpStamp('order.new', AMQP_NOPARAM, ['priority' => $priority]);
        $sender->send(new Envelope(new Order($priority), [$stamp]));
    }
    $found = received($receiver, 3);
    array_map([$receiver, 'ack'], $found);
    return $numbers($found) === [5, 3, 1] ?: $numbers($found);
});
check('a delay is a queue whose messages expire into the exchange', function () use ($sender, $receiver) {
    $begin = microtime(true);
    $sender->send(new Envelope(new Order(7), [new DelayStamp(1500), new AmqpStamp('order.late')]));
    $found = received($receiver, 1);
    $receiver->ack($found[0]);
    $headers = $found[0]->last(Symfony\Component\Messenger\Bridge\Amqp\Transport\AmqpReceivedStamp::class)
        ->getAmqpEnvelope()->getHeader('x-death');
    return microtime(true) - $begin >= 1.5 && $headers[0]['reason'] === 'expired';
});
check('a rejected message is gone', function () use ($sender, $receiver, $connection) {
    $sender->send(new Envelope(new Order(8), [new AmqpStamp('order.new')]));
    $receiver->reject(received($receiver, 1)[0]);
    return $connection->countMessagesInQueues() === 0;
});
check('what is not acknowledged comes again', function () use ($serializer, $options, $sender, $numbers) {
    $sender->send(new Envelope(new Order(9), [new AmqpStamp('order.new')]));
    $first = connection($options);
    $numbers(received(new AmqpReceiver($first, $serializer), 1));
    $first->channel()->getConnection()->disconnect();
    $second = new AmqpReceiver(connection($options), $serializer);
    $again = received($second, 1);
    $second->ack($again[0]);
    return $numbers($again) === [9];
});
check('an unroutable message is confirmed', function () use ($sender) {
    $sender->send(new Envelope(new Order(10), [new AmqpStamp('elsewhere')]));
    return true;
});
check('the queue is purged', function () use ($connection, $sender) {
    $sender->send(new Envelope(new Order(11), [new AmqpStamp('order.new')]));
    $connection->purgeQueues();
    return $connection->countMessagesInQueues() === 0;
});
check('a queue that is declared otherwise is refused', function () {
    try {
        connection([
            'exchange' => ['name' => 'messenger', 'type' => 'topic'],
            'queues' => ['orders' => ['arguments' => ['x-max-priority' => 2]]],
        ])->setup();
    } catch (\AMQPException $error) {
        return str_contains($error->getMessage(), "PRECONDITION_FAILED - inequivalent arg 'x-max-priority' for queue 'orders'");
    }
    return false;
});
