"""The errors of Leat. Every message names the thing, the cause and the
remedy."""


class Error(Exception):
    """The base of all errors of Leat."""


class InvalidArgument(Error, ValueError):
    """The caller's fault; trying again cannot help."""


class NotFound(Error):
    """Nothing has that name: no such bucket, object or field."""


class PermissionDenied(Error):
    """Credentials are missing, wrong, expired or too weak."""


class Unavailable(Error):
    """The other side failed, and did so until the retries were used up."""


class Throttled(Unavailable):
    """The other side asks for less, and did so until the retries were used up."""


class DeadlineExceeded(Unavailable):
    """The other side took too long, until the retries were used up."""


class ResourceExhausted(Error):
    """A budget is too small for even one batch; the message says how small."""


class Corrupt(Error):
    """Bytes arrived and are wrong, or the object is not the one indexed."""


class Cancelled(Error):
    """The work was ended on purpose."""


class Internal(Error):
    """A bug of Leat. Please report the message."""
