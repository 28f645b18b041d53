"""RabbitMQ's enabled_plugins file: which of its plugins are built in, and which are not here.

Called by `load`, for warnings only: nothing is turned on or off by it. No state.
"""

from __future__ import annotations

import re

BUILT_IN = frozenset(
    {
        "rabbitmq_auth_mechanism_ssl",
        "rabbitmq_consistent_hash_exchange",
        "rabbitmq_management",
        "rabbitmq_management_agent",
        "rabbitmq_prometheus",
        "rabbitmq_random_exchange",
        "rabbitmq_recent_history_exchange",
        "rabbitmq_shovel",
        "rabbitmq_shovel_management",
        "rabbitmq_web_dispatch",
    }
)
_COMMENT = re.compile(r"%[^\n]*")
_LIST = re.compile(
    r"\s*\[\s*(?:([a-z]\w*|'[^']+')\s*(?:,\s*(?:[a-z]\w*|'[^']+')\s*)*)?\]\s*\.\s*\Z"
)


def parse(content: str) -> list[str]:
    """Return the names in `[rabbitmq_management,rabbitmq_prometheus].`.

    Raises: ValueError with a text for the operator when it is something else.
    """
    text = _COMMENT.sub("", content)
    if text.strip() and not _LIST.match(text):
        raise ValueError("is no list of plugins, write [rabbitmq_management,rabbitmq_prometheus].")
    return re.findall(r"[a-z]\w*", text)


def remark(name: str) -> str | None:
    """Return what the operator should hear about a plugin that was enabled; None for one that is built in."""
    return None if name in BUILT_IN else f"plugin {name} has no effect here: it is not built in"
