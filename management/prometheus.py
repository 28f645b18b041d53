"""placeholder"""
from aiohttp import web
def create_app(node): return web.Application()
