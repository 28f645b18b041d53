from burrowmq.embedded import Broker as Broker
from burrowmq.embedded import BrokerError as BrokerError

__version__: str
