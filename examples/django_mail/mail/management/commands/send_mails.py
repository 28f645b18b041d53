"""`python manage.py send_mails`: the worker."""

from django.core.management.base import BaseCommand

from mail import queues


class Command(BaseCommand):
    """Sends mails from the queue until it is interrupted."""

    help = __doc__

    def handle(self, *args: object, **options: object) -> None:
        """Work."""
        queues.work(lambda: False)
