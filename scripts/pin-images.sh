#!/usr/bin/env bash
# Pins images to the digests that their tags have now, as image:tag@sha256:…; run again, it moves them.
#
#   scripts/pin-images.sh                                    those that the Dockerfiles and Compose take from elsewhere
#   scripts/pin-images.sh deploy/kubernetes/overlays/mine    the service's own in an overlay, once they have been pushed
#
# It asks the registries through `docker buildx` or, without it, through `crane`. Unless each image has a digest, no file is
# changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
files=(Dockerfile .devcontainer/Dockerfile docker-compose.yml)

digest_of() {
	if docker buildx version >/dev/null 2>&1; then
		docker buildx imagetools inspect "$1" --format '{{.Manifest.Digest}}'
	else
		crane digest "$1"
	fi
}

# In these files an image of this service has no tag, and neither has a stage.
images=$(grep -hoE '^(FROM| *image:) +[^ @]+:[^ @]+' "${files[@]}" | awk '{print $2}' | sort -u)
if (($#)); then
	files=("${@/%//kustomization.yaml}")
	images=$(sed -nE 's/^.*\{.*newName: ([^ ,]+), newTag: "?([^ ",}]+)"?.*\}$/\1:\2/p' "${files[@]}" | sort -u)
	[[ -n $images ]] || { echo "pin-images: ${files[*]}: no {name: …, newName: …, newTag: …}" >&2; exit 1; }
fi

expressions=()
for image in $images; do
	digest=$(digest_of "$image")
	[[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || { echo "pin-images: no digest of $image: $digest" >&2; exit 1; }
	pattern=${image//./\\.}
	expressions+=(
		-e "s#^((FROM| *image:) +)$pattern(@sha256:[0-9a-f]{64})?( |\$)#\1$image@$digest\4#"
		-e "s#(newName: ${pattern%:*}, newTag: \"?${pattern##*:}\"?)(, digest: sha256:[0-9a-f]{64})?\}#\1, digest: $digest}#"
	)
	echo "$image@$digest"
done
sed -i -E "${expressions[@]}" "${files[@]}"
