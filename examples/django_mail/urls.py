"""Where the one view is."""

from django.urls import path
from mail.views import sign_up

urlpatterns = [path("sign-up/", sign_up)]
