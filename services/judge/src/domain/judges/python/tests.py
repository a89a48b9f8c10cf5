"""Runs in the interpreter of the tests. The answer's names are `Far` objects here, and equality is decided here.

T2: an object of the answer equals no plain data, and two such objects are equal only if they are the same object.
T3: operators, `in` and predicates such as `startswith` could let an object decide its own test, so they are used only with
    objects whose class the tests name themselves.
"""

# Methods of built-in types that return whether something holds (T3).
_PREDICATES = {
    name
    for kind in (str, bytes, int, float, set, dict, list)
    for name in dir(kind)
    if name.startswith("is") or name in ("startswith", "endswith")
}
_DECIDING = {"__contains__"} | {
    f"__{prefix}{name}__" for name in [*_BINARY, *_ORDER] for prefix in ("", "r", "i")
}
_ORDERING = {f"__{name}__" for name in _ORDER}
# Types that the answer may send by name; all others are objects of the answer.
_PLAIN_TYPES = {
    kind.__name__: kind
    for kind in (bool, int, float, str, list, tuple, dict, set, frozenset, bytes, bytearray, complex, range, object, type)
}
_ROOM_OF_TESTS = "tests"


class BrokenTests(BaseException):
    """The row's tests are wrong, whatever the answer is."""


class Tests(Wire):
    def forget(self):
        super().forget()
        # Numbers of the classes that the tests name (T3).
        self.named_classes = set()
        self.known = {}
        self.has_asked = False
        self.is_in_place = False
        self.changed = None
        self.failure = None

    def hear(self, printed="", changed=None):
        if isinstance(printed, str) and printed:
            sys.stdout.write(printed)
        self.changed = changed

    def check(self, error):
        if isinstance(error, BrokenTests):
            raise error
        if isinstance(error, AssertionError):
            # Raised in a function of the tests that the answer called; kept, as the answer could catch it.
            self.failure = self.failure or error

    # The answer may only use objects that the tests gave it, and none of their attributes that lead to the tests themselves.

    def class_number(self, kind):
        # The answer gets the number of the class, but may not use the class.
        return self.number_of(kind)

    def refuse_base(self):
        raise BrokenTests("they derive a class from one of the answer, which is in another process")

    def attribute(self, thing, name):
        is_open = isinstance(name, str) and (
            not name.startswith("_") and type(thing).__module__ == _ROOM_OF_TESTS
            or name in ("__name__", "__qualname__", "__doc__") and type(thing) is types.FunctionType
        )
        if not is_open:
            raise AttributeError(f"{name!r} of an object of the tests cannot be reached")
        return getattr(thing, name)

    def on_set(self, number, name, value):
        thing = self.thing(number)
        if not isinstance(name, str) or name.startswith("_") or type(thing).__module__ != _ROOM_OF_TESTS:
            raise AttributeError(f"{name!r} of an object of the tests cannot be set")
        setattr(thing, name, self.decode(value))

    def on_operate(self, number, name, args):
        thing = self.thing(number)
        if type(thing).__module__ != _ROOM_OF_TESTS and name != "__iter__":
            raise TypeError("only operators of the tests' own classes can be used")
        if name == "__eq__":
            return bool(thing == self.decode(args[0]))
        return super().on_operate(number, name, args)

    def encode_object(self, value):
        if isinstance(value, (types.ModuleType, types.FrameType, types.CodeType, types.TracebackType)):
            raise TypeError(f"a {type(value).__name__} cannot be given to the answer")
        for kind in (list, dict, set):
            if isinstance(value, kind):
                return self.encode(kind(value))
        return super().encode_object(value)

    # Values of the answer

    def decode_type(self, name):
        if name in _PLAIN_TYPES:
            return _PLAIN_TYPES[name]
        found = getattr(builtins, name, None)
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
        raise TypeError(f"the answer's value {name} is no plain data")

    def equal(self, far, other):
        """T2"""
        if far is other:
            return True
        if isinstance(other, (list, dict, set, bytearray)) and not is_far(other):
            plain = self.ask("plain", far_of(far)[1])
            return type(plain) in (list, dict, set, bytearray) and plain == other
        return False

    def is_instance(self, thing, far):
        number = far_of(far)[1]
        if is_far(thing):
            return self.ask("instance", far_of(thing)[1], number) is True
        shadowed = getattr(thing, "_shadowed", None) if type(thing) in _SHADOWS.values() else None
        return shadowed is not None and self.ask("instance", shadowed[1], number) is True

    def operate(self, far, name, args):
        """T3"""
        if name == "__exit__":
            # The context manager must not suppress errors of the tests, or its own errors in order to skip the rest.
            self.leave(far, args)
            return False
        if name in _DECIDING and not all(map(is_far, args)):
            if far_of(far)[3] not in self.named_classes:
                raise TypeError(f"the tests cannot trust {name} of an object that is the answer's own")
            if name in _ORDERING:
                raise TypeError("an object of the answer has no order with plain data")
        return super().operate(far, name, args)

    def leave(self, far, args):
        """The end of a `with`. @returns whether its context manager wants to suppress the error."""
        return super().operate(far, "__exit__", (*args[:2], None)) is True

    def get(self, far, name):
        if name in _PREDICATES and far_of(far)[3] not in self.named_classes:
            raise TypeError(f"the tests cannot trust {name} of an object that is the answer's own")
        return super().get(far, name)

    def name(self, name):
        self.has_asked = True
        if name in self.known:
            return self.known[name]
        value = self.ask("name", name)
        kind = far_of(value)[2] if is_far(value) else None
        if kind == "class" and name[:1].isupper():
            self.named_classes.add(far_of(value)[1])
        if kind in ("class", "function"):
            self.known[name] = value
        return value

    def call(self, far, name, args, kwargs):
        if self.is_in_place:
            return self.change(FarMethod(far, name) if name is not None else far, args, kwargs)
        return super().call(far, name, args, kwargs)

    def change(self, function, args, kwargs):
        """A call whose value is not used. Its purpose is to change its arguments, so the changes are applied here."""
        if type(function) is FarMethod:
            number, name = far_of(function._of)[1], function._name
        else:
            number, name = far_of(function)[1], None
        encoded = [[self.encode(each) for each in args], [[key, self.encode(each)] for key, each in kwargs.items()]]
        try:
            value = self.ask("change", number, name, *encoded)
        finally:
            changed, self.changed = self.changed, None
            if changed is not None:
                for old, new in zip([*args, *kwargs.values()], [*changed[0], *changed[1]]):
                    _refill(old, self, new)
        return value


def _refill(old, wire, new):
    if type(old) not in (list, dict, set, bytearray):
        return
    new = wire.decode(new)
    if type(new) is not type(old) or new == old:
        return
    if type(old) in (list, bytearray):
        old[:] = new
    else:
        old.clear()
        old.update(new)
