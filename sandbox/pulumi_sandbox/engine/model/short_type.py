"""How a type is called where there is little room."""


def short_type(type_: str) -> str:
    """Return a type token without what repeats itself (`gcp:secretmanager/secret:Secret`) or is plumbing."""
    package, _, rest = type_.partition(":")
    module, _, name = rest.rpartition(":")
    if package == "pulumi-python":
        return f"{module.removeprefix('dynamic/')}:{name}"
    head, _, tail = module.rpartition("/")
    return f"{package}:{head}:{name}" if head and tail.lower() == name.lower() else type_
