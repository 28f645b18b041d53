"""The application that the cluster's test runs and kills: a queue to Parquet with `availableNow`, the spool on S3.

Arguments: the master, address, queue, folder of sink and checkpoint, the S3 endpoint, records for a trigger.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from tests.support.object_stores import BUCKET, REGION

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def main() -> None:
    master, url, queue, folder, endpoint, records = sys.argv[1:]
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": JAVA,
        "spark.executor.cores": "1",
        # What is killed is no fault of the task.
        "spark.task.maxFailures": "30",
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.local.dir": f"{folder}/local",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    place = {
        "spoolLocation": f"s3://{BUCKET}/spool",
        "spool.endpoint": endpoint,
        "spool.region": REGION,
        "spool.allowHttp": "true",
    }
    frame = (
        spark.readStream.schema("message_id string, body binary")
        .format("amqp")
        .options(**{"amqp.uri": url, "queue": queue, **place})
        # A broker that is killed may bring back what was acknowledged a moment ago.
        .options(maxRecordsPerTrigger=records, consumersPerQueue=2, dedupeRetention="1h")
        .options(pollTimeoutMs=1000)
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
