"""What a query may say: `option(...)` of the source and the sink, read and checked at once.

Owns no state; needs neither Spark nor Arrow.

    reading     options by name, with every problem collected before one error tells them all
    connection  which broker, which user (`amqp.*`)
    source      streams, `mode=peek`, `mode=drain`
    stream_queue  stream queues: `startingOffsets`, `mode=replay`
    sink        where rows are published, and how

Names are camelCase as in Spark's own sources. Spark makes them lower case on the way here, so upper and lower case make
no difference. An unknown name is an error, because Spark itself would not report it.
"""

from pyspark_amqp.options.reading import BadOptions, OptionReader
from pyspark_amqp.options.sink import SinkOptions, read_sink_options
from pyspark_amqp.options.source import (
    DrainOptions,
    PeekOptions,
    Queues,
    StreamOptions,
    TaskOptions,
    read_batch_options,
    read_stream_options,
    read_stream_queue_options,
)
from pyspark_amqp.options.stream_queue import StreamQueueOptions, is_stream_queue

__all__ = [
    "BadOptions",
    "DrainOptions",
    "OptionReader",
    "PeekOptions",
    "Queues",
    "SinkOptions",
    "StreamOptions",
    "StreamQueueOptions",
    "TaskOptions",
    "is_stream_queue",
    "read_batch_options",
    "read_sink_options",
    "read_stream_options",
    "read_stream_queue_options",
]
