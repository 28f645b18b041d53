"""The application that crash tests kill: a queue to Parquet with `availableNow`. Started as a process of its own.

Arguments: address, queue, folder, records for a trigger, dedupe; then options of the source, `name=value`.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from tests.spark.crash_source import DyingSource

# A short life: the fast compiler only, one thread of garbage collection.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def main() -> None:
    url, queue, folder, records, dedupe = sys.argv[1:6]
    more = dict(pair.split("=", 1) for pair in sys.argv[6:])
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", JAVA)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", f"{folder}/local")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(DyingSource)
    frame = (
        spark.readStream.schema("message_id string, body binary, redelivered boolean")
        .format("amqp-dying")
        .options(**{"amqp.uri": url, "queue": queue, "spoolLocation": f"{folder}/spool"})
        .options(maxRecordsPerTrigger=records, consumersPerQueue=2, pollTimeoutMs=1000)
        .options(dedupe=dedupe)
        .options(**more)
        .load()
    )
    query = (
        frame.writeStream.format("parquet")
        .option("path", f"{folder}/out")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
