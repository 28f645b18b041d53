"""The management UI, measured: five tasks by keyboard beside RabbitMQ's UI, weight, first view, the cost of open pages.

`python -m bench.ui` prints the tables of docs/management-ui.md; `python -m bench.ui pictures` makes those of docs/ui. Both
need playwright (requirements-browser.in) and a Chromium.
"""
