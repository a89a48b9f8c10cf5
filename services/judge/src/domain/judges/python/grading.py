"""Runs the tests of rows in the interpreter of the tests, one job after the other.

T1: a name refers to the answer only if neither the tests nor Python itself define it, so an answer that defines `len`,
    `sorted` or `math` does not change how it is tested.
"""

import ast
import io

_MODULES = sys.stdlib_module_names
# Names that tests use without importing them, although they are not the answer's task.
_HELPERS = {"isclose": "math", "Counter": "collections", "OrderedDict": "collections", "deque": "collections"}


class _Bare:
    """A context manager of the answer around code that tests nothing of the answer, and so may suppress errors."""

    def __init__(self, far):
        self._far = far

    def __enter__(self):
        return self._far.__enter__()

    def __exit__(self, *error):
        return far_of(self._far)[0].leave(self._far, error)


class _Statements(ast.NodeTransformer):
    """Replaces some expressions (calls whose value is not used, some context managers, `type`) by calls of functions whose
    names the tests cannot use."""

    def visit_With(self, node):
        self.generic_visit(node)
        loaded = [each.id for part in node.body for each in ast.walk(part) if isinstance(each, ast.Name)]
        if all(name.startswith("$") or hasattr(builtins, name) for name in loaded) and not any(map(_has_assert, node.body)):
            for item in node.items:
                manager = item.context_expr
                item.context_expr = ast.Call(ast.Name("$bare", ast.Load()), [manager], [])
                ast.copy_location(item.context_expr, manager)
                ast.fix_missing_locations(item)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "type" and len(node.args) == 1 and not node.keywords:
            node.func = ast.copy_location(ast.Name("$type", ast.Load()), node.func)
        return node

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if node.attr != "__class__" or not isinstance(node.ctx, ast.Load):
            return node
        call = ast.Call(ast.Name("$type", ast.Load()), [node.value], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_Expr(self, node):
        self.generic_visit(node)
        call = node.value
        if isinstance(call, ast.Call) and not (isinstance(call.func, ast.Name) and call.func.id in ("super", "locals")):
            name = ast.copy_location(ast.Name("$statement", ast.Load()), call)
            node.value = ast.copy_location(ast.Call(name, [call.func, *call.args], call.keywords), call)
            ast.fix_missing_locations(node)
        return node


class _Builtins(dict):
    """Python's own names and then the answer's (T1)."""

    def __missing__(self, name):
        return self["$answer"](name)


class _Solution(types.ModuleType):
    """For `from solution import add`."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self._tests.name(name)
        except NameError:
            raise AttributeError(name) from None


def _names_in(tree):
    bound, called, based, loaded = set(), set(), set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (loaded if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
    # Names that only occur as in `name.something`, and names that also occur alone.
    heads = [node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    based = {head.id for head in heads}
    ids = {id(head) for head in heads}
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    alone = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in ids}
    return bound, called, based - alone, loaded


def _run_code(tests, code, entry_point):
    try:
        tree = ast.parse(code, "<tests>")
        compiled = compile(_Statements().visit(tree), "<tests>", "exec")
    except SyntaxError as error:
        raise BrokenTests(f"the tests are not Python: {error}") from None
    bound, called, only_based, loaded = _names_in(tree)
    modules = only_based & _MODULES
    free = loaded - bound - modules - set(dir(builtins)) - {"$statement", "$bare", "$type"}
    for name in free:
        if name.startswith("assert"):
            raise BrokenTests(f"{name} is used but not defined")

    helpers = free & _HELPERS.keys() if free - _HELPERS.keys() else set()

    def of_answer(name):
        if name in helpers:
            return getattr(__import__(_HELPERS[name]), name)
        return __import__(name) if name in modules else tests.name(name)

    def call_statement(function, *args, **kwargs):
        if type(function) in (FarCallable, FarMethod):
            return tests.change(function, args, kwargs)
        return function(*args, **kwargs)

    known = _Builtins(vars(builtins))
    known["$answer"] = lambda name: _found(of_answer, name)
    known["$statement"] = call_statement
    known["$type"] = _type_of
    known["$bare"] = lambda manager: _Bare(manager) if is_far(manager) else manager
    if "unittest" in code:
        import unittest

        # The test cases are run afterwards, and main() would end the program.
        unittest.main = lambda *args, **kwargs: None
    room = types.ModuleType(_ROOM_OF_TESTS)
    sys.modules[_ROOM_OF_TESTS] = room
    solution = sys.modules["solution"] = _Solution("solution")
    solution._tests = tests
    space = room.__dict__
    space["__builtins__"] = known
    space["__name__"] = _ROOM_OF_TESTS
    # If the tests use nothing else of the answer, the task is to redefine the one built-in function that they call.
    own_builtins = called & set(vars(builtins)) - bound
    if entry_point is not None:
        space[entry_point] = _entry(tests, entry_point)
    elif not free and len(own_builtins) == 1 and "solution" not in bound:
        (name,) = own_builtins
        try:
            space[name] = tests.name(name)
        except NameError:
            pass
    try:
        exec(compiled, space)
    except ImportError as error:
        if "_far_error" in error.__dict__:
            raise
        raise BrokenTests(f"an import fails: {error}") from None
    _run_defined(tests, tree, space, entry_point)
    if tests.failure is not None:
        raise tests.failure
    if not tests.has_asked:
        raise BrokenTests("the tests use nothing of the answer")


def _type_of(thing):
    """`type` with one argument, and `__class__`."""
    if is_far(thing):
        wire, _, kind, class_number = far_of(thing)
        return _KINDS[kind] if kind in _KINDS else wire.decode_object(class_number, "class", True, -1)
    # A shadow's own type is the plain one.
    return type(thing).__mro__[1] if type(thing) in _SHADOWS.values() else type(thing)


def _has_assert(node):
    return any(isinstance(each, ast.Assert) for each in ast.walk(node))


def _found(of_answer, name):
    try:
        return of_answer(name)
    except NameError:
        raise KeyError(name) from None


def _entry(tests, name):
    try:
        return tests.name(name)
    except NameError:
        # LeetCode's form.
        return getattr(tests.name("Solution")(), name)


def _run_defined(tests, tree, space, entry_point):
    """Runs what the tests only define: cases of unittest, functions for pytest, `check` of HumanEval."""
    mentioned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    unittest = sys.modules.get("unittest")
    cases = [] if unittest is None else [
        value for value in space.values()
        if isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ == _ROOM_OF_TESTS
    ]
    if cases:
        suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(case) for case in cases)
        result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
        problems = [text.strip().splitlines()[-1] for _, text in [*result.failures, *result.errors]]
        if not result.wasSuccessful() or result.skipped:
            raise AssertionError("; ".join(problems[:3]) or "a test was skipped")
    functions = {name: value for name, value in space.items() if type(value) is types.FunctionType}
    for name, function in functions.items():
        if name.startswith("test_") and name not in mentioned and function.__module__ == _ROOM_OF_TESTS:
            if function.__code__.co_argcount > 0:
                raise BrokenTests(f"{name} takes arguments, but test functions are called without any")
            function()
    if "check" in functions and "check" not in mentioned:
        if entry_point is None:
            raise BrokenTests("check(candidate) is defined but not called; give the row an entry_point")
        functions["check"](space[entry_point])


def _run_case(tests, name, args, expected):
    """Compares the value of a call with the row's expected value, which is JSON; tuples count as lists."""
    found = _as_json(_entry(tests, name)(*args))
    is_right = found == expected or (isinstance(expected, list) and len(expected) == 1 and found == expected[0])
    if not is_right:
        raise AssertionError(f"the call returned {found!r:.200} instead of {expected!r:.200}")


def _as_json(value):
    if isinstance(value, (list, tuple)):
        return [_as_json(each) for each in value]
    if isinstance(value, dict):
        return {key if isinstance(key, str) else json.dumps(key): _as_json(each) for key, each in value.items()}
    return value


def _verdict_of(tests, code, test):
    try:
        tests.forget()
        tests.ask("load", code)
        tests.is_in_place = test.get("in_place", False)
        if "code" in test:
            _run_code(tests, test["code"], test.get("entry_point"))
        else:
            _run_case(tests, test["name"], test["args"], test["expected"])
        return {"kind": "passed"}
    except BrokenTests as error:
        return {"kind": "broken", "reason": str(error)}
    except BaseException as error:
        try:
            reason = f"{type(error).__name__}: {error}"
        except BaseException:
            reason = type(error).__name__
        return {"kind": "failed", "reason": reason[:500]}


def serve_tests():
    """Runs one job after the other, each with all of its tests or until the host says that it is enough."""
    def call(kind, text=""):
        return host_call(f"{kind}\n{text}")

    output = sys.stdout
    job = json.loads(call("ready"))
    while True:
        tests = Tests(lambda message: call("ask", message))
        for test in job["tests"]:
            call("begin")
            sys.stdout = io.StringIO()
            verdict = _verdict_of(tests, job["code"], test)
            sys.stdout = output
            if call("verdict", json.dumps({"nonce": job["nonce"], **verdict})) == "enough":
                break
        job = json.loads(call("done"))


serve_tests()
