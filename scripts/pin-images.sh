#!/usr/bin/env bash
# Pins every image to the digest that its tag has now, as image:tag@sha256:…; run again, it moves them. It asks the registries
# for the digests through Docker, so it runs where they can be reached.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
files=(Dockerfile .devcontainer/Dockerfile docker-compose.yml)

# An image of ours has no tag in these files; a stage is none.
images=$(grep -hoE '^(FROM| *image:) +[^ @]+:[^ @]+' "${files[@]}" | awk '{print $2}' | sort -u)
for image in $images; do
	digest=$(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}')
	[[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || { echo "pin-images: no digest of $image: $digest" >&2; exit 1; }
	sed -i -E "s#^((FROM| *image:) +)${image//./\\.}(@sha256:[0-9a-f]{64})?( |\$)#\1$image@$digest\4#" "${files[@]}"
	echo "$image@$digest"
done
