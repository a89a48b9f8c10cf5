"""The protocol between the interpreter of the tests and that of the answer; both run this file.

W1: plain data is sent by value and arrives as exact built-in types. Even if the answer overrides `__eq__` in a subclass of
    `int` or `list`, the tests compare a real `int` or `list`.
W2: every other object stays in its interpreter and is sent as a number, for which the other side has a `Far` object.
W3: either side makes requests, and may get requests before the answer comes, so functions of the tests can be arguments.
"""


class Wire:
    """@param exchange sends a text to the other side and returns the next text from there."""

    def __init__(self, exchange):
        self.exchange = exchange
        self.forget()

    def forget(self):
        """Both sides forget every number."""
        self.objects = []
        # Numbers of the objects that the other side may use.
        self.given = set()
        self.numbers = {}
        self.far = {}
        self.classes = {}

    # Requests to the other side (W3)

    def ask(self, *request):
        """Sends a request and returns the value of its answer. @raises the error that the other side raised."""
        message = json.dumps(request)
        while True:
            reply = json.loads(self.exchange(message))
            if reply[0] in ("ok", "error"):
                self.hear(*reply[2:])
            if reply[0] == "ok":
                return self.decode(reply[1])
            if reply[0] == "error":
                error = self.decode_error(*reply[1])
                if isinstance(error, _ENDS_OF_ITERATION) and not (request[0] == "next" and type(error) is StopIteration):
                    error = RuntimeError(f"the call raised {type(error).__name__}")
                raise error from None
            message = self.serve(reply)

    def serve(self, request):
        """Answers a request of the other side."""
        try:
            name, *args = request
            value = getattr(self, f"on_{name}")(*args)
            reply = ["ok", self.encode(value)]
        except BaseException as error:
            self.check(error)
            reply = ["error", self.encode_error(error)]
        return json.dumps([*reply, *self.besides()])

    def besides(self):
        """Additional values that are sent with every reply."""
        return []

    def hear(self, *besides):
        """Receives the additional values of a reply."""

    def check(self, error):
        """Raises errors that must not be sent to the other side."""

    def refuse_base(self):
        raise TypeError("a class of the other side cannot be a base here")

    def attribute(self, thing, name):
        return getattr(thing, name)

    def thing(self, number):
        if number not in self.given:
            raise ValueError(f"no object has the number {number!r}")
        return self.objects[number]

    def give(self, thing):
        number = self.number_of(thing)
        self.given.add(number)
        return number

    def call(self, far, name, args, kwargs):
        args = [self.encode(each) for each in args]
        kwargs = [[key, self.encode(value)] for key, value in kwargs.items()]
        return self.ask("call", far_of(far)[1], name, args, kwargs)

    def get(self, far, name):
        value = self.ask("get", far_of(far)[1], name)
        return FarMethod(far, name) if type(value) is _Method else value

    def operate(self, far, name, args):
        return self.ask("operate", far_of(far)[1], name, [self.encode(each) for each in args])

    # Requests from the other side

    def on_call(self, number, name, args, kwargs):
        thing = self.thing(number)
        function = thing if name is None else self.attribute(thing, name)
        return function(*map(self.decode, args), **{key: self.decode(value) for key, value in kwargs})

    def on_get(self, number, name):
        value = self.attribute(self.thing(number), name)
        # Python makes a new method object at every access, so it cannot have a number.
        return _Method() if isinstance(value, types.MethodType) else value

    def on_set(self, number, name, value):
        setattr(self.thing(number), name, self.decode(value))

    def on_operate(self, number, name, args):
        return _OPERATIONS[name](self.thing(number), *map(self.decode, args))

    def on_next(self, number):
        return next(self.thing(number))

    # Values

    def class_number(self, kind):
        return self.give(kind)

    def number_of(self, thing):
        number = self.numbers.get(id(thing))
        if number is None:
            number = self.numbers[id(thing)] = len(self.objects)
            self.objects.append(thing)
        return number

    def encode(self, value):
        kind = type(value)
        if value is None or kind in (bool, str, float):
            return value
        if kind is int:
            return value if -_MAX_EXACT_INT < value < _MAX_EXACT_INT else ["int", hex(value)]
        if kind in (list, tuple, set, frozenset):
            return [kind.__name__, [self.encode(each) for each in value]]
        if kind is dict:
            return ["dict", [[self.encode(key), self.encode(each)] for key, each in value.items()]]
        if kind in (bytes, bytearray):
            return [kind.__name__, value.hex()]
        if kind is complex:
            return ["complex", value.real, value.imag]
        if kind is range or kind is slice:
            return [kind.__name__, [self.encode(each) for each in (value.start, value.stop, value.step)]]
        if kind in (type({}.keys()), type({}.items()), type({}.values())):
            return [kind.__name__, [self.encode(each) for each in value]]
        if value is Ellipsis or value is NotImplemented:
            return ["singleton", "Ellipsis" if value is Ellipsis else "NotImplemented"]
        if kind is _Method:
            return ["method"]
        if is_far(value):
            return ["home", far_of(value)[1]]
        if kind in _SHADOWS.values():
            return ["home", value._shadowed[1]]
        if kind is FarMethod:
            return ["home_method", far_of(value._of)[1], value._name]
        if isinstance(value, type) and getattr(builtins, value.__name__, None) is value:
            return ["type", value.__name__]
        if isinstance(value, type) and value in self.classes:
            return ["home", self.classes[value]]
        library = (kind.__module__, kind.__name__)
        if library in _LIBRARY and getattr(sys.modules.get(library[0]), library[1], None) is kind:
            return ["library", *library, self.encode(_LIBRARY[library][0](value))]
        return self.encode_object(value)

    def decode(self, wire):
        if not isinstance(wire, list):
            # `json` always gives the same NaN object, and lists with the same object would be equal.
            return wire if wire == wire else float("nan")
        kind, *parts = wire
        if kind in _SEQUENCES:
            return _SEQUENCES[kind](map(self.decode, parts[0]))
        if kind == "dict":
            return {self.decode(key): self.decode(value) for key, value in parts[0]}
        if kind == "int":
            return int(parts[0], 16)
        if kind in _BYTES:
            return _BYTES[kind].fromhex(parts[0])
        if kind == "complex":
            return complex(*parts)
        if kind in ("range", "slice"):
            return (range if kind == "range" else slice)(*map(self.decode, parts[0]))
        if kind == "dict_keys":
            return dict.fromkeys(map(self.decode, parts[0])).keys()
        if kind == "dict_items":
            return dict(map(self.decode, parts[0])).items()
        if kind == "dict_values":
            return dict(enumerate(map(self.decode, parts[0]))).values()
        if kind == "singleton":
            return Ellipsis if parts[0] == "Ellipsis" else NotImplemented
        if kind == "method":
            return _Method()
        if kind == "home":
            return self.thing(parts[0])
        if kind == "home_method":
            return self.attribute(self.thing(parts[0]), parts[1])
        if kind == "type":
            return self.decode_type(parts[0])
        if kind == "library":
            module, name, value = parts
            _, build = _LIBRARY[module, name]
            return build(getattr(__import__(module), name), self.decode(value))
        if kind == "shadow":
            return self.decode_shadow(*parts)
        if kind == "exception_class":
            return self.exception_class(parts[0])
        if kind == "exception":
            return self.decode_error(*parts[0])
        if kind == "object":
            return self.decode_object(*parts)
        raise ValueError(f"a value has the unknown kind {kind!r}")

    def decode_type(self, name):
        found = getattr(builtins, name, None)
        if not isinstance(found, type):
            raise ValueError(f"no type is called {name!r}")
        return found

    def encode_object(self, value):
        """W2"""
        if isinstance(value, BaseException):
            return ["exception", self.encode_error(value)]
        kind = type(value)
        if isinstance(value, type) and issubclass(value, BaseException):
            return ["exception_class", self.class_chain(value)]
        # W1: immutable data is sent by value, with its number for the attributes that its class adds.
        for exact, make in _EXACT.items():
            if isinstance(value, exact):
                return ["shadow", self.encode(make(value)), self.give(value)]
        what = (
            "class" if isinstance(value, type)
            else "generator" if kind is types.GeneratorType
            else "function" if kind in (types.FunctionType, types.BuiltinFunctionType)
            else "object"
        )
        return ["object", self.give(value), what, callable(value), self.class_number(kind)]

    def decode_object(self, number, kind, is_callable, class_number):
        # An object of the other side always gets the same `Far` object.
        if not (isinstance(number, int) and isinstance(class_number, int)):
            raise ValueError("an object has no number")
        if number not in self.far:
            self.far[number] = (FarCallable if is_callable is True else Far)(self, number, kind, class_number)
        return self.far[number]

    def decode_shadow(self, value, number):
        value = self.decode(value)
        if type(value) not in _SHADOWS:
            raise ValueError(f"{type(value).__name__} is not immutable plain data")
        shadow = _SHADOWS[type(value)](value)
        shadow._shadowed = (self, number)
        return shadow

    # Errors. For the answer's own error classes the other side makes classes with the same names and bases.

    def class_chain(self, kind):
        chain = []
        for each in kind.__mro__:
            if getattr(builtins, each.__name__, None) is each:
                return [*chain, each.__name__]
            if each.__module__ in _ERRORS and getattr(sys.modules.get(each.__module__), each.__name__, None) is each:
                return [*chain, ["library", each.__module__, each.__name__]]
            if each in self.classes:
                return [*chain, ["home", self.classes[each]]]
            if issubclass(each, BaseException):
                chain.append([self.give(each), each.__name__])
        return [*chain, "Exception"]

    def encode_error(self, error):
        try:
            args = [self.encode(each) for each in error.args]
        except Exception:
            args = []
        try:
            text = str(error)
        except Exception:
            text = ""
        return [self.class_chain(type(error)), args, text, self.give(error)]

    def exception_class(self, chain):
        *own, base = chain
        if isinstance(base, list) and base[0] == "library":
            found = getattr(sys.modules.get(base[1]), base[2], None) if base[1] in _ERRORS else None
        elif isinstance(base, list):
            found = self.thing(base[1])
        else:
            found = getattr(builtins, base, None)
        if not (isinstance(found, type) and issubclass(found, BaseException)):
            found = Exception
        for number, name in reversed(own):
            known = next((kind for kind, of in self.classes.items() if of == number), None)
            if known is None:
                known = type(str(name), (found,), {"__getattr__": _attribute_of_error, "__str__": _text_of_error})
                self.classes[known] = number
            found = known
        return found

    def decode_error(self, chain, args, text, number):
        kind = self.exception_class(chain)
        args = [self.decode(each) for each in args]
        try:
            error = kind(*args)
        except Exception:
            error = kind.__new__(kind)
            error.args = tuple(args)
        error.__dict__["_far_error"] = (self, number, text)
        return error


# Functions that get the exact value of an instance of a subclass, without its overridden methods.
_EXACT = {
    int: lambda value: int.__index__(value),
    float: lambda value: float.__float__(value) * 1.0,
    str: lambda value: str.__str__(value),
    tuple: lambda value: tuple(tuple.__iter__(value)),
    bytes: lambda value: bytes(bytes.__iter__(value)),
    frozenset: lambda value: frozenset(frozenset.__iter__(value)),
}


def _attribute_of_shadow(self, name):
    if name.startswith("__"):
        raise AttributeError(name)
    wire, number = self._shadowed
    return wire.get(wire.decode_object(number, "object", False, -1), name)


# Plain data that has further attributes on the other side, such as the fields of a named tuple.
_SHADOWS = {kind: type(kind.__name__, (kind,), {"__getattr__": _attribute_of_shadow}) for kind in _EXACT}


class _Method:
    """Replaces a bound method, which is looked up again when it is called."""


def _attribute_of_error(self, name):
    far = self.__dict__.get("_far_error")
    if far is None or name.startswith("_"):
        raise AttributeError(name)
    return far[0].get(far[0].decode_object(far[1], "object", False, -1), name)


def _text_of_error(self):
    far = self.__dict__.get("_far_error")
    return BaseException.__str__(self) if far is None or far[2] == "" else far[2]
