"""A client of Spark Connect: reads, streams and writes with a server that has nothing of this package.

Arguments: the zip, the broker's address, a queue with messages, a folder. Prints how many rows each step saw.
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession


def main() -> None:
    archive, url, queue, folder = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # The server starts before the zip is on the path, so that its processes do not inherit it.
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    sys.path.insert(0, archive)
    import pyspark_amqp

    assert pyspark_amqp.__file__.startswith(archive)
    pyspark_amqp.register(spark)
    broker = {"amqp.uri": url}
    print("looked at", spark.read.format("amqp").options(**broker, queue=queue).load().count())
    stream = spark.readStream.format("amqp").options(**broker, queue=queue)
    rows = stream.options(spoolLocation=f"{folder}/spool", pollTimeoutMs="500").load()
    run(rows.writeStream.format("parquet").option("path", f"{folder}/out"), f"{folder}/first")
    kept = spark.read.parquet(f"{folder}/out")
    print("streamed", kept.count(), "distinct", kept.select("message_id").distinct().count())
    kept.select("body").write.format("amqp").options(**broker, routingKey=queue).mode(
        "append"
    ).save()
    back = spark.readStream.schema("body binary").parquet(f"{folder}/out")
    run(back.writeStream.format("amqp").options(**broker, routingKey=queue), f"{folder}/second")
    spark.stop()


def run(query: object, checkpoint: str) -> None:
    started = (
        query.option("checkpointLocation", checkpoint)  # type: ignore[attr-defined]
        .trigger(availableNow=True)
        .start()
    )
    started.awaitTermination()


if __name__ == "__main__":
    main()
