"""A policy pack that judges nothing: of no policy at all the SDK makes none."""

from pulumi_policy import PolicyPack, ResourceValidationPolicy

POLICY = ResourceValidationPolicy("nothing", "Judges nothing.", lambda _resource, _report: None)
PolicyPack("floor", policies=[POLICY])
