"""The ways in which an opener ends, as exit statuses of sysexits.h. A sentence never holds a key, a share or a PIN."""

import os


class NotOpened(Exception):
    """The file's key was not had; the sentence says why, and what to do."""

    status = os.EX_DATAERR

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class Away(NotOpened):
    """The holder does not answer now; it may, later."""

    status = os.EX_TEMPFAIL


class Refused(NotOpened):
    """The holder answers and will not do it: a right, a PIN or a key that is disabled."""

    status = os.EX_NOPERM


class NotOurs(NotOpened):
    """The bytes that were wrapped are not this holder's, or not of this file."""


class BadSettings(NotOpened):
    """A setting of the opener's is missing or wrong."""

    status = os.EX_CONFIG
