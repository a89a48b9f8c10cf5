"""Manifests against the schemas of Kubernetes versions: validate.py VERSION… < manifests as JSON lines. Prints what is wrong."""

import json
import sys

import kubernetes_validate

# Custom resources of operators have their own schemas, which the package does not include.
CUSTOM = ("keda.sh/", "leaderworkerset.x-k8s.io/")


def known(manifest):
    """What of a manifest Kubernetes' own schemas describe: all of it, or the pods that an operator makes of it."""
    if not manifest["apiVersion"].startswith(CUSTOM):
        return [manifest]
    group = manifest["spec"].get("leaderWorkerTemplate", {})
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{manifest['metadata']['name']}-{name}", **group[name]["metadata"]},
            "spec": group[name]["spec"],
        }
        for name in ("leaderTemplate", "workerTemplate")
        if name in group
    ]


problems = 0
for line in sys.stdin:
    for manifest in known(json.loads(line)):
        for version in sys.argv[1:]:
            try:
                kubernetes_validate.validate(manifest, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                where = ".".join(str(part) for part in error.path)
                print(f"{version} {manifest['kind']} {manifest['metadata']['name']} {where}: {error.message[:200]}")
                problems += 1
sys.exit(1 if problems else 0)
