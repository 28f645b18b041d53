"""`format("amqp")` as Spark finds and asks it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs Spark: run by `make test-spark`")

from pyspark.sql.datasource import CaseInsensitiveDict, DataSource

import pyspark_amqp
from pyspark_amqp.columns import struct_of
from pyspark_amqp.convert import schema_of
from pyspark_amqp.datasource import AmqpDataSource
from pyspark_amqp.options import BadOptions
from pyspark_amqp.sink.writers import BatchWriter, StreamWriter
from pyspark_amqp.source.batch import DrainReader, PeekReader
from pyspark_amqp.source.stream import AmqpStreamReader
from pyspark_amqp.wire import Publisher, connect, message_octets
from scripts.spark_zip import pack


def source(**options: str) -> AmqpDataSource:
    return AmqpDataSource(CaseInsensitiveDict(options))


def test_spark_finds_it_by_its_name() -> None:
    assert issubclass(pyspark_amqp.DefaultSource, DataSource)
    assert pyspark_amqp.DefaultSource is AmqpDataSource
    assert AmqpDataSource.name() == "amqp"


def test_importing_the_package_loads_neither_spark_nor_arrow() -> None:
    code = "import pyspark_amqp, sys; sys.exit(bool({'pyspark', 'pyarrow'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pyspark_amqp.nothing


FROM_A_ZIP = """
import os, sys
from types import SimpleNamespace as Fake
sys.path.insert(0, sys.argv[1])
import pyspark_amqp
environment = {"PYTHONPATH": "/other"}
session = Fake(_sc=Fake(environment=environment), dataSource=Fake(register=lambda source: None))
pyspark_amqp.register(session)
pyspark_amqp.register(session)
assert environment["PYTHONPATH"].split(os.pathsep) == [sys.argv[1], "/other"], environment
"""


def test_a_zip_is_told_to_the_python_processes(tmp_path: Path) -> None:
    pack(tmp_path / "amqp.zip")
    subprocess.run([sys.executable, "-c", FROM_A_ZIP, str(tmp_path / "amqp.zip")], check=True)


CLIENT = """
import sys
from types import SimpleNamespace as Fake
from pyspark import cloudpickle
import pyspark_amqp
sent = []
pyspark_amqp.register(Fake(dataSource=Fake(register=lambda source: sent.append(cloudpickle.dumps(source)))))
sys.stdout.buffer.write(sent[0])
"""
SERVER = """
import sys
sys.modules["pyspark_amqp"] = None  # the package is not there
from pyspark import cloudpickle
source = cloudpickle.loads(sys.stdin.buffer.read())
url, queue, folder = sys.argv[1:]
options = {"amqp.uri": url, "queue": queue, "spoolLocation": folder, "pollTimeoutMs": "300"}
made = source(options)
reader = made.streamReader(made.schema())
start = reader.initialOffset()
end = reader.latestOffset(start, reader.getDefaultReadLimit())
copies = [cloudpickle.loads(cloudpickle.dumps((reader, each))) for each in reader.partitions(start, end)]
bodies = [body for copy, each in copies for batch in copy.read(each) for body in batch.column("body").to_pylist()]
assert bodies == [b"one"], bodies
assert sorted(name for name in sys.modules if name.startswith("pyspark_amqp.")) == []
"""


@pytest.mark.needs_server
@pytest.mark.slow
def test_a_server_of_spark_connect_needs_nothing_of_it(
    broker_url: str, queue: str, tmp_path: Path
) -> None:
    with connect(broker_url) as connection:
        publisher = Publisher(connection)
        publisher.send([message_octets("", queue, b"one")])
        publisher.flush()
    sent = subprocess.run([sys.executable, "-c", CLIENT], check=True, stdout=subprocess.PIPE).stdout
    server = [sys.executable, "-c", SERVER, broker_url, queue, str(tmp_path)]
    subprocess.run(server, input=sent, check=True)


def test_options_choose_the_reader() -> None:
    struct = struct_of()
    drain = {"mode": "drain", "drainId": "d", "spoolLocation": "/s"}
    assert isinstance(source(queue="q").reader(struct), PeekReader)
    assert isinstance(source(queue="q", **drain).reader(struct), DrainReader)
    stream = source(queue="q", spoolLocation="/s").streamReader(schema=struct)
    assert isinstance(stream, AmqpStreamReader)
    assert isinstance(source(routingKey="q").writer(schema=struct, overwrite=False), BatchWriter)
    made = source(routingKey="q").streamWriter(schema=struct, overwrite=False)
    assert isinstance(made, StreamWriter)


def test_the_schema_has_raw_headers_on_request() -> None:
    assert source(queue="q").schema() == struct_of()
    wanted = source(queue="q", includeHeadersRaw="TRUE").schema()
    assert wanted == struct_of(schema_of(has_headers_raw=True))


def test_loading_tells_what_no_read_takes() -> None:
    with pytest.raises(BadOptions, match="'queu' is not known here"):
        source(queu="q", spoolLocation="/s").schema()
