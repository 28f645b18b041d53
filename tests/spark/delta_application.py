"""A queue to a Delta table, each batch once: what docs/spark-sinks.md says. The test of Delta runs and kills it.

Arguments: address, queue, folder, records for a trigger.
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import DataFrame, SparkSession

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}


def session(folder: str) -> SparkSession:
    """Return a session that knows Delta, from the jars that DELTA_JARS names."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.local.dir", f"{folder}/local")
    return builder.config("spark.jars", os.environ["DELTA_JARS"]).getOrCreate()


def main() -> None:
    url, queue, folder, records = sys.argv[1:]
    spark = session(folder)
    spark.sparkContext.setLogLevel("ERROR")
    table = f"{folder}/table"

    def keep(batch: DataFrame, number: int) -> None:
        # A batch that Delta has already is not written again.
        (
            batch.write.format("delta")
            .mode("append")
            .option("txnAppId", "orders")
            .option("txnVersion", number)
            .save(table)
        )

    if queue == "count":
        frame = spark.read.format("delta").load(table)
        print("rows", frame.count(), "distinct", frame.select("message_id").distinct().count())
        spark.stop()
        return
    query = (
        spark.readStream.schema("message_id string, body binary")
        .format("amqp")
        .options(**{"amqp.uri": url, "queue": queue, "spoolLocation": f"{folder}/spool"})
        .options(maxRecordsPerTrigger=records, consumersPerQueue=2, pollTimeoutMs=1000)
        .load()
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
