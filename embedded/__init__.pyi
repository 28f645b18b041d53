from burrowmq.embedded.broker import Broker as Broker
from burrowmq.embedded.errors import BrokerError as BrokerError
from burrowmq.embedded.vhost import SeenMessage as SeenMessage
from burrowmq.embedded.vhost import VirtualHost as VirtualHost
