"""Signing up: the welcome mail is put into a queue."""

import json

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from mail import queues


@csrf_exempt
def sign_up(request: HttpRequest) -> JsonResponse:
    """Take an address; 503 when the broker does not take the mail."""
    address = json.loads(request.body)["address"]
    try:
        queues.publish({"to": address, "text": "Welcome!"})
    except queues.NotTaken:
        return JsonResponse({"error": "try again later"}, status=503)
    return JsonResponse({"ok": True}, status=202)
