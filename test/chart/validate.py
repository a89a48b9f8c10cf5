"""Manifests against the schemas of Kubernetes versions: validate.py VERSION… < manifests as JSON lines. Prints what is wrong."""

import json
import sys

import kubernetes_validate

# What comes with operators has schemas of its own, which the package does not carry.
CUSTOM = ("keda.sh/",)

problems = 0
for line in sys.stdin:
    manifest = json.loads(line)
    if manifest["apiVersion"].startswith(CUSTOM):
        continue
    for version in sys.argv[1:]:
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            where = ".".join(str(part) for part in error.path)
            print(f"{version} {manifest['kind']} {manifest['metadata']['name']} {where}: {error.message[:200]}")
            problems += 1
sys.exit(1 if problems else 0)
