"""The broker's refusals as HTTP answers, in its own words.

Owns no state; the server asks for every exception that a handler lets pass.
"""

from __future__ import annotations

from burrowmq.broker.definitions.document import ImportRefused
from burrowmq.broker.rules.auth import LoginRefused
from burrowmq.broker.rules.parameter_rules import RefusedValue, ValidationFailed
from burrowmq.broker.rules.pattern import BadPattern
from burrowmq.management.answers.reply import ApiError, bad_request
from burrowmq.protocol.errors import AmqpError
from burrowmq.protocol.table import MalformedTable


def refusal_of(error: Exception) -> ApiError | None:
    """The HTTP answer to a refusal by the broker; None for any other error."""
    if isinstance(error, LoginRefused):
        return ApiError(401, "not_authorised", str(error))
    if isinstance(error, ValidationFailed | RefusedValue):
        return bad_request(str(error))
    if isinstance(error, ImportRefused):
        return bad_request(error.reason)
    if isinstance(error, BadPattern):
        return bad_request(f"invalid regular expression: {error}")
    if isinstance(error, MalformedTable):
        return bad_request(str(error))
    if not isinstance(error, AmqpError):
        return None
    text = str(error)
    if error.reply_code == 404:
        return ApiError(404, "not_found", text)
    if error.reply_code == 403:
        return ApiError(401, "not_authorised", text)
    if error.reply_code == 540:  # RabbitMQ asks over a channel, and tells what closed it
        text = f"540 {error.reply_text}"
    return bad_request(text)
