"""What operators have laid down.

Users and permissions, policies, the shape of parameters, expressions in bounded time.
"""
