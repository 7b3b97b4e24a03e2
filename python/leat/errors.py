"""The errors of Leat. Every message names the thing, the cause and the
remedy."""


class Error(Exception):
    """The base of all errors of Leat."""


class InvalidArgument(Error, ValueError):
    """The caller made a mistake; trying again cannot help."""


class NotFound(Error):
    """There is no bucket, object or field of that name."""


class PermissionDenied(Error):
    """Credentials are missing, wrong, expired or too weak."""


class Unavailable(Error):
    """The server failed until the retries were used up."""


class Throttled(Unavailable):
    """The server throttled requests until the retries were used up."""


class DeadlineExceeded(Unavailable):
    """The server took too long until the retries were used up."""


class ResourceExhausted(Error):
    """A budget is too small for even one batch; the message gives the size needed."""


class Corrupt(Error):
    """Bytes arrived and are wrong, or the object is not the one indexed."""


class Skipped(Error):
    """Raise it in a function of yours to pass over its sample: another one takes the place.

    See `leat.ops.Filter`. Beside `leat.Pack` and `leat.TokenBudget` none can, since steps are
    planned by the lengths of their samples: there it ends the iteration."""


class Cancelled(Error):
    """The caller ended the work."""


class Internal(Error):
    """A bug of Leat. Please report the message."""
