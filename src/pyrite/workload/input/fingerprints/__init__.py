"""Fingerprints: short hashes that decide whether a job is up to date.

Two commands have different fingerprints if their code differs, or the data that can be reached from
it. Not included is what a function looks up only when it runs: files that it opens itself, the
time, or names that are computed, as in `getattr(module, name)`. Code of installed packages and of
the standard library is included by name only. If a value has no fingerprint, as a generator has
none, it gets a random one, so that the job runs again, and the reason is kept."""

from pyrite.workload.input.fingerprints.digests import NO_FINGERPRINT, SIZE, digest
from pyrite.workload.input.fingerprints.survey import Fingerprints, Survey, digest_of

__all__ = ["NO_FINGERPRINT", "SIZE", "Fingerprints", "Survey", "digest", "digest_of"]
