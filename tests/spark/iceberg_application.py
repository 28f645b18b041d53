"""A queue to an Iceberg table by pyiceberg, each batch once: what docs/spark-sinks.md says. A test runs and kills it.

Arguments: address, queue (`count`: say what the table has), folder, records for a trigger.
"""

from __future__ import annotations

import os
import sys

from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import DataFrame, SparkSession

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
NUMBER = "orders.batch"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}


def main() -> None:
    url, queue, folder, records = sys.argv[1:]
    lake = SqlCatalog("lake", uri=f"sqlite:///{folder}/lake.db", warehouse=f"file://{folder}/lake")

    def keep(batch: DataFrame, number: int) -> None:
        rows = batch.toArrow()
        table = lake.create_table_if_not_exists("shop.orders", rows.schema)
        written = [each.summary[NUMBER] for each in table.snapshots() if each.summary]
        if str(number) not in written:
            table.append(rows, snapshot_properties={NUMBER: str(number)})

    lake.create_namespace_if_not_exists("shop")
    if queue == "count":
        table = lake.load_table("shop.orders")
        ids = table.scan(selected_fields=("message_id",)).to_arrow()["message_id"]
        print("rows", len(ids), "distinct", len(ids.unique()))
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.local.dir", f"{folder}/local")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
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
