"""burrowctl's own part: which command, which node, which exit status, and an output that goes away."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from burrowmq.cli.__main__ import main
from tests.support.served import Output, Served, ctl

HOST = socket.gethostname().partition(".")[0]


def first_line(text: str) -> str:
    return text.partition("\n")[0]


# -- which command ----------------------------------------------------------------------------------------------------


def test_without_a_command_there_is_an_overview_and_a_usage_error() -> None:
    bare, asked = ctl(), ctl("--help")
    assert (bare.code, asked.code) == (64, 0)
    assert bare.out == asked.out
    assert "list_queues" in asked.out
    assert ctl("--version") == Output(0, "3.13.7\n", "")


def test_a_command_that_is_not_known_is_no_command_whatever_its_options_are() -> None:
    output = ctl("list_quues", "--nosuch")
    assert (output.code, output.out) == (64, "")
    assert "Did you mean 'list_queues'?" in output.err


def test_help_of_a_command_asks_no_node(tmp_path: Path) -> None:
    output = ctl("--data-dir", str(tmp_path), "list_queues", "--help")
    assert (output.code, output.err) == (0, "")
    assert "list_queues" in output.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["ping", "--nosuch", "-z"], "Invalid options for this command:\n\n--nosuch\n-z\n"),
        (["ping", "--online"], "Invalid options for this command:\n\n--online\n"),
        (
            ["list_users", "--formatter", "xml"],
            "Invalid options for this command:\n\n--formatter : xml (one of ",
        ),
        (["list_users", "-t", "soon"], "Invalid options for this command:\n\n--timeout : soon"),
        (["list_users", "-t", "nan"], "Invalid options for this command:\n\n--timeout : nan"),
        (["list_users", "-t"], "Invalid options for this command:\n\n--timeout : (no value)"),
        (
            ["--data-dir", "d", "add_user", "--url", "u"],
            "Error (argument validation): not enough arguments.\nArguments given:\n\tadd_user\n",
        ),
        (
            ["-q", "ping", "now"],
            "Error (argument validation): too many arguments.\nArguments given:\n\t-q ping now\n",
        ),
    ],
)
def test_what_cannot_be_run_is_refused_with_the_words_that_were_given(
    words: list[str], told: str
) -> None:
    output = ctl(*words)
    assert (output.code, output.out) == (64, "")
    assert output.err.startswith(told)


@pytest.mark.parametrize("name", ["rabbitmqctl", "rabbitmq-diagnostics"])
def test_it_answers_to_the_name_that_it_was_called_by(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [f"/usr/sbin/{name}", "help", "ping"])
    assert main() == 0
    assert f"{name} [--node <node>]" in capsys.readouterr().out


def test_as_a_module_it_is_burrowctl(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/cli/__main__.py"])
    assert main(["help", "ping"]) == 0
    assert "burrowctl [--node <node>]" in capsys.readouterr().out


# -- which node -------------------------------------------------------------------------------------------------------


def test_the_control_socket_is_in_the_data_directory_that_is_named_first(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, nowhere = str(served.data_dir), str(tmp_path / "nowhere")
    assert ctl("--data-dir", mine, "-q", "ping").code == 0
    monkeypatch.setenv("RABBITMQ_MNESIA_DIR", mine)
    assert ctl("-q", "ping").code == 0
    monkeypatch.setenv("BURROWMQ_DATA_DIR", nowhere)
    assert ctl("-q", "ping").code == 69
    assert ctl("--data-dir", mine, "-q", "ping").code == 0


@pytest.mark.parametrize(
    ("node", "words", "folder"),
    [
        ("", [], f"rabbit@{HOST}"),
        ("", ["-n", "other"], f"other@{HOST}"),
        ("", ["-n", "other@there"], "other@there"),
        ("third@there", [], "third@there"),
        ("third@there", ["-n", "other@there"], "other@there"),
    ],
)
def test_rabbitmqs_base_directory_has_one_for_each_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, node: str, words: list[str], folder: str
) -> None:
    monkeypatch.setenv("RABBITMQ_MNESIA_BASE", str(tmp_path))
    monkeypatch.setenv("RABBITMQ_NODENAME", node)
    assert f"control socket {tmp_path / folder / 'control.sock'}" in ctl(*words, "ping").err


def test_without_any_directory_it_is_data_below_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"control socket {tmp_path / 'data' / 'control.sock'}" in ctl("ping").err


def test_a_url_of_the_environment_counts_unless_a_directory_is_named(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BURROWMQ_MANAGEMENT_URL", f"http://127.0.0.1:{served.port}")
    monkeypatch.setenv("BURROWMQ_DATA_DIR", str(tmp_path / "nowhere"))
    assert ctl("-q", "ping").code == 0
    assert ctl("--data-dir", str(tmp_path / "nowhere"), "-q", "ping").code == 69
    monkeypatch.setenv("BURROWMQ_MANAGEMENT_URL", "no url")
    assert ctl("ping").code == 64


def test_a_refusal_of_the_node_is_said_and_unavailable(served: Served) -> None:
    output = served.ctl("-q", "set_policy", "p", "(", "{}")
    assert (output.code, first_line(output.err)) == (69, "Error:")


def test_an_application_that_is_stopped_is_told_how_to_start(stopped: Served) -> None:
    output = stopped.ctl("-q", "list_queues")
    assert output.code == 64
    assert output.err.startswith(
        "Error: this command requires the 'rabbit' app to be running on the target node."
        " Start it with 'rabbitmqctl start_app'.\nArguments given:\n\t-q list_queues\n"
    )
    assert stopped.ctl("-q", "start_app").code == 0
    assert stopped.ctl("-q", "list_queues").code == 0


# -- how long ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", ["0", "-1"])
def test_no_time_is_not_enough(served: Served, timeout: str) -> None:
    output = served.ctl("-n", "rabbit@h", "list_queues", "-t", timeout)
    assert output == Output(
        75,
        "",
        f"Error: operation list_queues on node rabbit@h timed out. Timeout value used: {timeout}\n",
    )


@pytest.mark.parametrize("timeout", ["10", "0.5e1", "infinity", "1e10", "1e300"])
def test_time_is_seconds_or_without_end(served: Served, timeout: str) -> None:
    assert served.ctl("-q", "ping", "-t", timeout).out == "Ping succeeded\n"


# -- the output -------------------------------------------------------------------------------------------------------


def test_a_reader_that_has_read_enough_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert main(["help"]) == 0
    assert capsys.readouterr().err == ""


def test_an_output_that_is_full_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["help"]) == 74
    told = capsys.readouterr().err
    assert told == "Error: the output cannot be written: No space left on device\n"


def test_a_working_directory_that_is_no_more_is_the_error(
    served: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["--data-dir", str(served.data_dir), "-q", "list_vhosts"]) == 0
    assert main(["list_vhosts"]) == 74
    told = capsys.readouterr().err
    assert told == "Error: the working directory is no more: run this in another\n"


def test_an_error_comes_after_what_was_printed(served: Served) -> None:
    command = [sys.executable, "-m", "burrowmq.cli", "--data-dir", str(served.data_dir)]
    ended = subprocess.run(
        [*command, "set_policy", "p", "(", "{}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ended.returncode == 69
    assert 0 <= ended.stdout.index("Setting policy") < ended.stdout.index("Error:")


def test_what_failed_is_the_error_even_if_the_output_fails_too(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        words = ["--data-dir", str(served.data_dir), "set_policy", "p", "(", "{}"]
        assert main(words) == 69
    assert capsys.readouterr().err.startswith("Error:\n")


def test_an_answer_that_finds_no_memory_is_no_traceback(served: Served) -> None:
    for number in range(3000):
        served.bench.queue(f"queue-{number}-{'n' * 100}")
    words = ["--data-dir", str(served.data_dir), "list_queues", "name", "messages", "arguments"]
    with_little = f"""
import resource, sys, burrowmq.cli.commands.lists
from burrowmq.cli.__main__ import main
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (most, most))
sys.exit(main({words}))
"""
    ended = subprocess.run(
        [sys.executable, "-c", with_little], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (
        71,
        "Error: no memory is left for the answer: ask for less, or raise the limit (ulimit -v)\n",
    )


def test_an_output_that_cannot_be_written_is_no_traceback() -> None:
    words = [sys.executable, "-m", "burrowmq.cli", "version"]
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 74
    assert ended.stderr == "Error: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize(("words", "code"), [(["list_users"], 0), (["nosuch"], 64)])
def test_closed_outputs_change_no_status(served: Served, words: list[str], code: int) -> None:
    ctl_words = [sys.executable, "-m", "burrowmq.cli", "--data-dir", str(served.data_dir), *words]
    for closed in (">&-", "2>&-", "2>/dev/full"):
        ended = subprocess.run(
            ["sh", "-c", f'exec "$@" {closed}', "sh", *ctl_words], capture_output=True, check=False
        )
        assert ended.returncode == code
        assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["add_user", "bob"], 65, b"Password is not provided"),
        (["import_definitions"], 65, b"Error"),
    ],
)
def test_a_closed_input_is_empty(served: Served, words: list[str], code: int, text: bytes) -> None:
    ctl_words = [sys.executable, "-m", "burrowmq.cli", "--data-dir", str(served.data_dir), *words]
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *ctl_words], capture_output=True, check=False
    )
    assert (ended.returncode, text in ended.stderr) == (code, True)
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_an_output_that_knows_few_characters_shows_the_others_by_number(
    served: Served, encoding: str
) -> None:
    assert served.ctl("add_vhost", "日本").code in (0, 69)
    ctl_words = [sys.executable, "-m", "burrowmq.cli", "--data-dir", str(served.data_dir), "-q"]
    for formatter in ("table", "json"):
        ended = subprocess.run(
            [*ctl_words, "list_vhosts", "name", "--formatter", formatter],
            env={**os.environ, "PYTHONIOENCODING": encoding},
            capture_output=True,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, b"")
        shown = ended.stdout.decode(encoding)
        if formatter == "json":
            assert {"name": "日本"} in json.loads(shown)
        else:
            assert ("日本" if encoding == "utf-8" else r"\u65e5\u672c") in shown


def test_the_c_locale_has_boxes_and_names_by_number(served: Served) -> None:
    served.ctl("add_vhost", "日本")
    ctl_words = [sys.executable, "-m", "burrowmq.cli", "--data-dir", str(served.data_dir), "-q"]
    c_locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = subprocess.run(
        [*ctl_words, "list_vhosts", "name", "--formatter", "pretty_table"],
        env={**os.environ, **c_locale},
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert rb"\u2502 \u65e5\u672c" in ended.stdout


def test_an_argument_that_is_no_text_is_refused(served: Served) -> None:
    for words in (["list_queues", "-p", "\udcff"], ["add_user", "\udcff", "x"]):
        output = served.ctl(*words)
        assert output.code == 64
        assert output.err == "Error (argument validation): '\\udcff' is no UTF-8 text\n"


def test_an_interrupt_is_a_status_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        """An output at which the user presses Ctrl-C."""

        def write(self, _: str) -> int:
            raise KeyboardInterrupt

        def flush(self) -> None:
            """Nothing is kept back."""

    monkeypatch.setattr(sys, "stdout", Interrupted())
    assert main(["help"]) == 130
    assert capsys.readouterr().err == ""
