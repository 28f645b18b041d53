"""Messages to Arrow record batches and back, column by column; needs pyarrow, no JVM.

Owns no state. Called by the Spark source and sink and by jobs; works without Spark:

    for batch in Reader(schema_of(["queue", "body"])).batches(deliveries): ...
    publisher.send(Writer(exchange="archive").messages(batch))
"""

from pyspark_amqp.convert.reading import Reader
from pyspark_amqp.convert.schema import HEADERS_RAW, MESSAGE, VERSION, schema_of, selected
from pyspark_amqp.convert.strict import BadMessage
from pyspark_amqp.convert.writing import BadRow, Writer

__all__ = [
    "HEADERS_RAW",
    "MESSAGE",
    "VERSION",
    "BadMessage",
    "BadRow",
    "Reader",
    "Writer",
    "schema_of",
    "selected",
]
