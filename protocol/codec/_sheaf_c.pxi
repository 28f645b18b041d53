# A run whose messages have several addresses, cut by where they go: the twin of _sheaf_py.


@cython.final
cdef class Sheaf:
    """Those messages of a run that go one way, in their order."""

    cdef readonly object target
    cdef readonly list messages
    cdef readonly int64_t size
    cdef readonly uint32_t flags


cdef Sheaf _sheaf(object target):
    cdef Sheaf sheaf = Sheaf.__new__(Sheaf)
    sheaf.target = target
    sheaf.messages = []
    sheaf.size = 0
    sheaf.flags = 0
    return sheaf


cdef inline int _bind_in(Sheaf sheaf, Message message) except -1:
    PyList_Append(sheaf.messages, message)
    sheaf.size += message.size
    sheaf.flags |= message.flags
    return 0


def look_up(
    list messages not None, dict routes not None, dict rings not None, resolve, list found not None
):
    """Append the route of each message to `found`: from `routes`, by the ring of its exchange, else `resolve`d."""
    cdef Py_ssize_t index
    cdef bytes address = None, start = None
    cdef PyObject *known
    cdef Message message
    cdef Ring ring = None
    route = None
    for index in range(PyList_GET_SIZE(messages)):
        message = <Message?>messages[index]
        if message.address is not address:
            address = message.address
            if ring is not None and _begins_with(address, start):
                route = <object>ring._of_key(address)
                PyList_Append(found, route)
                continue
            known = PyDict_GetItemWithError(routes, address)
            if known != NULL:
                route = <object>known
            elif not rings:
                route = resolve(address)
            else:
                start = _exchange_part(address)
                known = PyDict_GetItemWithError(rings, start)
                if known == NULL:
                    route = resolve(address)
                else:
                    ring = <Ring>known
                    route = <object>ring._of_key(address)
        PyList_Append(found, route)


cdef inline bint _begins_with(bytes address, bytes start) noexcept:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(start)
    if PyBytes_GET_SIZE(address) < size:
        return False
    return not memcmp(PyBytes_AS_STRING(address), PyBytes_AS_STRING(start), size)


cdef inline bytes _exchange_part(bytes address):
    """The octets of an address up to the end of its exchange's name."""
    cdef const char *octets = PyBytes_AS_STRING(address)
    return PyBytes_FromStringAndSize(
        octets, min(1 + <Py_ssize_t><uint8_t>octets[0], PyBytes_GET_SIZE(address))
    )


def sheaves(list messages not None, list routes not None):
    """The messages by their routes (`routes` has them in the same order), the sheaves in the order of their firsts."""
    cdef list result = []
    cdef dict by_route = {}
    cdef Py_ssize_t index
    cdef Sheaf sheaf = None
    cdef PyObject *known
    if PyList_GET_SIZE(messages) != PyList_GET_SIZE(routes):
        raise ValueError("as many routes as messages are needed")
    for index in range(PyList_GET_SIZE(messages)):
        route = routes[index]
        if sheaf is None or sheaf.target is not route:
            known = PyDict_GetItemWithError(by_route, route)
            if known == NULL:
                sheaf = _sheaf(route)
                by_route[route] = sheaf
                result.append(sheaf)
            else:
                sheaf = <Sheaf>known
        _bind_in(sheaf, <Message?>messages[index])
    return result


def shares(list messages not None, list routes not None):
    """The messages by the queues of their routes, each queue's in their order."""
    cdef dict by_queue = {}
    cdef dict by_route = {}
    cdef Py_ssize_t index
    cdef list of_route = None
    cdef Sheaf sheaf
    cdef Message message
    cdef PyObject *known
    last = None
    if PyList_GET_SIZE(messages) != PyList_GET_SIZE(routes):
        raise ValueError("as many routes as messages are needed")
    for index in range(PyList_GET_SIZE(messages)):
        route = routes[index]
        if of_route is None or route is not last:
            last = route
            known = PyDict_GetItemWithError(by_route, route)
            if known == NULL:
                of_route = []
                for queue in route.queues or ():
                    if queue not in by_queue:
                        by_queue[queue] = _sheaf(queue)
                    of_route.append(by_queue[queue])
                by_route[route] = of_route
            else:
                of_route = <list>known
        message = <Message?>messages[index]
        for sheaf in of_route:
            _bind_in(sheaf, message)
    return list(by_queue.values())


def places(list messages not None, list some not None):
    """The places of `some` of the messages, which stand in both in one order."""
    cdef list result = []
    cdef Py_ssize_t index = 0, place, count = PyList_GET_SIZE(some)
    for place in range(PyList_GET_SIZE(messages)):
        if index == count:
            break
        if PyList_GET_ITEM(messages, place) is PyList_GET_ITEM(some, index):
            result.append(place)
            index += 1
    if index != count:
        raise ValueError("not all of them are among the messages, in that order")
    return result
