"""Messages between AMQP 0-9-1 brokers (BurrowMQ, RabbitMQ) and Spark, in pure Python.

Owns no state. These parts stand on their own and need no JVM:

    wire      a blocking bulk client: standard library only
    convert   messages to Arrow record batches and back: needs pyarrow
    spool     messages made durable in files before they are acknowledged: needs pyarrow

Invariants: imports nothing of the server, nothing compiled, so that one small zip works on any
cluster whose workers have pyarrow; importing this module loads neither pyarrow nor pyspark.
"""
