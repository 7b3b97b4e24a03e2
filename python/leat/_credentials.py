"""SSO, `aws login` and MFA, by botocore where it is installed.

The engine follows every other way of the AWS credential chain by itself. If a
profile needs one of these, the engine runs this file as a program, as it would run
a `credential_process`. A separate program can be asked again at any time, from any
thread, after a fork, and while the interpreter ends.
"""

import argparse
import importlib.util
import json
import shlex
import sys


def helper_command() -> str:
    """The command for the engine; empty where botocore is not installed."""
    if not sys.executable or importlib.util.find_spec("botocore") is None:
        return ""
    return shlex.join([sys.executable, __file__])


def credentials_of(profile: str) -> dict:
    """botocore's credentials for a profile, as a credential_process prints
    them."""
    import botocore.session

    found = botocore.session.Session(profile=profile).get_credentials()
    if found is None:
        raise LookupError(f"botocore has no credentials for profile {profile!r}")
    keys = found.get_frozen_credentials()
    printed = {
        "Version": 1,
        "AccessKeyId": keys.access_key,
        "SecretAccessKey": keys.secret_key,
    }
    if keys.token:
        printed["SessionToken"] = keys.token
    # Only credentials that end have it, and only under this name.
    expiry = getattr(found, "_expiry_time", None)
    if expiry is not None:
        printed["Expiration"] = expiry.isoformat()
    return printed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", required=True)
    profile = parser.parse_args().profile
    try:
        printed = credentials_of(profile)
    except Exception as error:  # For any error, the last line is for the user.
        sys.exit(str(error) or type(error).__name__)
    json.dump(printed, sys.stdout)


if __name__ == "__main__":
    main()
