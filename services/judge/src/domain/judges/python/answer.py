"""Runs in the interpreter of the answer: executes its code and serves the requests of the tests. Nothing in here is
trusted, as the answer's code can change all of it; the tests treat everything that it sends as data."""

import io

_MAX_PRINTED = 1_000_000


class Answer(Wire):
    def __init__(self, exchange):
        super().__init__(exchange)
        self.printed = io.StringIO()
        self.changed = None

    def run(self):
        message = json.dumps(["ready"])
        while True:
            message = self.serve(json.loads(self.exchange(message)))

    def besides(self):
        printed = self.printed.getvalue()[:_MAX_PRINTED]
        self.printed.seek(0)
        self.printed.truncate()
        changed, self.changed = self.changed, None
        return [printed, changed]

    def on_load(self, code):
        self.forget()
        sys.stdout = self.printed
        self.module = types.ModuleType("solution")
        sys.modules["solution"] = self.module
        exec(compile(code, "<answer>", "exec"), self.module.__dict__)

    def on_name(self, name):
        try:
            return self.module.__dict__[name]
        except KeyError:
            raise NameError(f"name {name!r} is not defined") from None

    def on_change(self, number, name, args, kwargs):
        """A call after which the tests get their arguments back, as the call may have changed them."""
        thing = self.thing(number)
        args = [self.decode(each) for each in args]
        kwargs = {key: self.decode(value) for key, value in kwargs}
        try:
            return (thing if name is None else getattr(thing, name))(*args, **kwargs)
        finally:
            self.changed = [[self.encode(each) for each in args], [self.encode(each) for each in kwargs.values()]]

    def on_delete(self, number, name):
        delattr(self.thing(number), name)

    def on_plain(self, number):
        """An instance of a subclass of list, dict or set as plain data; None for any other object."""
        thing = self.thing(number)
        for kind in (list, dict, set, bytearray):
            if isinstance(thing, kind):
                return kind(kind.items(thing) if kind is dict else kind.__iter__(thing))
        return None

    def on_instance(self, number, class_number):
        return isinstance(self.thing(number), self.thing(class_number))

    def on_subclass(self, number, class_number):
        return issubclass(self.thing(number), self.thing(class_number))

    def equal(self, far, other):
        return far is other or (not is_far(other) and self.operate(far, "__eq__", [other]) is True)

    def is_instance(self, thing, far):
        return is_far(thing) and self.ask("instance", far_of(thing)[1], far_of(far)[1])


def serve_answer():
    Answer(host_call).run()


serve_answer()
