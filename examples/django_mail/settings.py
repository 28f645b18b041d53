"""Settings of a project that is one application and has no database."""

import os

SECRET_KEY = "only for the example"
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = ["mail"]
ROOT_URLCONF = "urls"
DATABASES: dict = {}
USE_TZ = True
AMQP_URL = os.environ.get("AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/%2F")
