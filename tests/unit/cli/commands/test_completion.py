"""Completion scripts: bash's own completion is asked, and zsh and fish read theirs where they are installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from burrowmq.cli.programs import PROGRAMS
from burrowmq.cli.registry import COMMANDS
from tests.support.served import ctl

ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
complete -p "${1##*/}" > /dev/null && _burrowctl && printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "bash"
    path.write_text(ctl("completion", "bash").out)
    return path


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["burrowctl", "list_q"], ["list_queues"]),
        (["rabbitmqctl", "-p", "/", "list_q"], ["list_queues"]),
        (["/usr/sbin/rabbitmq-plugins", ""], sorted(PROGRAMS["rabbitmq-plugins"])),
        (["rabbitmq-plugins", "list_q"], [""]),
        (
            ["burrowctl", "list_queues", "name", "messages_rea"],
            ["messages_ready", "messages_ready_ram"],
        ),
        (["burrowctl", "list_queues", "--onl"], ["--online"]),
        (["burrowctl", "list_queues", "--formatter", "js"], ["json", "json_stream"]),
        (["burrowctl", "list_queues", "--vhost", "na"], [""]),
        (["burrowctl", "delete_queue", "--if-"], ["--if-empty", "--if-unused"]),
        (["burrowctl", "completion", ""], ["bash", "fish", "zsh"]),
        (["burrowctl", "help", "add_v"], ["add_vhost"]),
    ],
)
def test_bash_offers_what_fits(script: Path, words: list[str], offered: list[str]) -> None:
    done = subprocess.run(
        ["bash", "-c", ASK, "bash", script, *words], capture_output=True, text=True, check=True
    )
    assert (sorted(done.stdout.rstrip("\n").split("\n")), done.stderr) == (sorted(offered), "")


def test_every_command_is_completed_in_every_shell() -> None:
    for shell in ("bash", "fish", "zsh"):
        text = ctl("completion", shell).out
        assert all(name in text for name in COMMANDS), shell
    assert ctl("completion", "tcsh").code == 64


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_shell_reads_its_script(shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not on this machine")
    text = ctl("completion", shell).out
    done = subprocess.run(
        [program, "--no-execute", "/dev/stdin"] if shell == "fish" else [program, "-n"],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
