#!/usr/bin/perl
# Perl's AnyEvent::RabbitMQ: anyevent_paths.pl HOST PORT. Prints `ok NAME` or `FAILED NAME ...` a check.
use strict;
use warnings;
use AnyEvent;
use AnyEvent::RabbitMQ;

my ($host, $port) = @ARGV;
$| = 1;

# Runs CODE with a function that ends it: with nothing when all is well, else with what is wrong.
sub check {
    my ($name, $code) = @_;
    my $done = AnyEvent->condvar;
    my $timer = AnyEvent->timer(after => 60, cb => sub { $done->send('nothing came') });
    eval { $code->(sub { $done->send(@_) }); 1 } or $done->send("died: $@");
    my $wrong = $done->recv;
    print defined $wrong ? "FAILED $name: $wrong\n" : "ok $name\n";
}

sub text { my ($frame) = @_; ref $frame ? $frame->method_frame->reply_text : $frame }

sub connected {
    my ($end, $then, %other) = @_;
    my $client = AnyEvent::RabbitMQ->new->load_xml_spec;
    $client->connect(
        host => $host, port => $port, user => 'guest', pass => 'guest', vhost => '/', timeout => 30,
        on_success => sub { $then->($client) },
        on_failure => sub { $end->('failed: ' . text(@_)) },
        on_close => sub { },
        %other,
    );
    return $client;
}

my ($client, $channel);
my $queue = "suite.perl.$$";
check 'connect', sub { my $end = shift; $client = connected($end, sub { $end->() }, tune => { heartbeat => 30 }) };
check 'open a channel', sub {
    my $end = shift;
    $client->open_channel(
        on_success => sub { $channel = shift; $end->() },
        on_failure => sub { $end->(text(@_)) }, on_close => sub { },
    );
};
check 'declare', sub {
    my $end = shift;
    $channel->declare_queue(
        queue => $queue, durable => 1, arguments => { 'x-max-length' => 5000 },
        on_success => sub { my $name = shift->method_frame->queue; $end->($name eq $queue ? () : $name) },
        on_failure => sub { $end->(text(@_)) },
    );
};
check 'declare and bind an exchange', sub {
    my $end = shift;
    my $bind = sub {
        $channel->bind_queue(
            queue => $queue, exchange => $queue, routing_key => 'a.#',
            on_success => sub { $end->() }, on_failure => sub { $end->(text(@_)) },
        );
    };
    $channel->declare_exchange(
        exchange => $queue, type => 'topic', auto_delete => 1,
        on_success => $bind, on_failure => sub { $end->(text(@_)) },
    );
};
check 'confirms', sub {
    my $end = shift;
    my $open = 500;
    my $publish = sub {
        for my $number (1 .. 500) {
            $channel->publish(
                exchange => $queue, routing_key => 'a.b', body => "m$number",
                header => { delivery_mode => 2, headers => { n => $number } },
                on_ack => sub { $end->() unless --$open },
                on_nack => sub { $end->('nacked') },
            );
        }
    };
    $channel->confirm(on_success => $publish, on_failure => sub { $end->(text(@_)) });
};
check 'consume in order, with a prefetch and acknowledgements', sub {
    my $end = shift;
    my $next = 1;
    my $tag;
    my $on_consume = sub {
        my $found = shift;
        my $body = $found->{body}->payload;
        return $end->("$body instead of m$next") if $body ne "m$next";
        $channel->ack(delivery_tag => $found->{deliver}->method_frame->delivery_tag);
        return if $next++ < 500;
        $channel->cancel(consumer_tag => $tag, on_success => sub { $end->() }, on_failure => sub { $end->(text(@_)) });
    };
    $channel->qos(prefetch_count => 20, on_success => sub {
        $channel->consume(
            queue => $queue, no_ack => 0, on_consume => $on_consume,
            on_success => sub { $tag = shift->method_frame->consumer_tag },
            on_failure => sub { $end->(text(@_)) },
        );
    }, on_failure => sub { $end->(text(@_)) });
};
check 'get from empty', sub {
    my $end = shift;
    $channel->get(
        queue => $queue, on_success => sub { $end->(exists shift->{empty} ? () : 'something') },
        on_failure => sub { $end->(text(@_)) },
    );
};
check 'a return', sub {
    my $end = shift;
    $channel->publish(
        exchange => '', routing_key => 'nowhere', body => 'back', mandatory => 1,
        on_return => sub {
            my $said = shift->method_frame;
            $end->($said->reply_code == 312 && $said->reply_text eq 'NO_ROUTE' ? () : $said->reply_text);
        },
    );
};
check 'reject, and the message comes again', sub {
    my $end = shift;
    my $count = 0;
    my $tag;
    $channel->consume(
        queue => $queue, no_ack => 0,
        on_consume => sub {
            my $frame = shift->{deliver}->method_frame;
            return $channel->reject(delivery_tag => $frame->delivery_tag, requeue => 1) unless $count++;
            $channel->ack(delivery_tag => $frame->delivery_tag);
            $channel->cancel(
                consumer_tag => $tag, on_failure => sub { $end->(text(@_)) },
                on_success => sub { $end->($frame->redelivered ? () : 'not redelivered') },
            );
        },
        on_success => sub {
            $tag = shift->method_frame->consumer_tag;
            $channel->publish(exchange => $queue, routing_key => 'a', body => 'again');
        },
        on_failure => sub { $end->(text(@_)) },
    );
};
check 'purge and delete', sub {
    my $end = shift;
    my $delete = sub {
        $channel->delete_queue(queue => $queue, on_success => sub { $end->() }, on_failure => sub { $end->(text(@_)) });
    };
    $channel->purge_queue(queue => $queue, on_success => $delete, on_failure => sub { $end->(text(@_)) });
};
check 'an error of the channel', sub {
    my $end = shift;
    my $close = sub {
        my $said = text(@_);
        $end->($said eq "NOT_FOUND - no queue '$queue' in vhost '/'" ? () : $said);
    };
    $client->open_channel(
        on_success => sub { shift->get(queue => $queue, on_success => sub { $end->('got') }, on_failure => sub { }) },
        on_failure => sub { $end->(text(@_)) }, on_close => $close,
    );
};
check 'close', sub { my $end = shift; $client->close(on_success => sub { $end->() }, on_failure => sub { $end->(text(@_)) }) };
