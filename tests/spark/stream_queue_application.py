"""A stream queue to Parquet with `availableNow`, which a test kills. Started as a process of its own.

Arguments: address, queue, folder, records for a trigger, where it begins.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def main() -> None:
    url, queue, folder, records, begin = sys.argv[1:]
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
    frame = (
        spark.readStream.schema("message_id string, body binary, stream_offset long")
        .format("amqp")
        .options(**{"amqp.uri": url, "queue": queue, "startingOffsets": begin})
        .options(maxRecordsPerTrigger=records, consumersPerQueue=2)
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
