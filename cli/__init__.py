"""burrowctl: rabbitmqctl and rabbitmq-diagnostics commands over HTTP. Standard library only."""
