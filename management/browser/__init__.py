"""What a browser needs that a tool does not: whose pages may write, safe headers, logins that last."""
