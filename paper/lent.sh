#!/usr/bin/env bash
# The runs at full size that results/ lacks, for a machine that is lent for minutes: bash paper/lent.sh STAGE OUT [MINUTES]
#
# A stage may be repeated until its exit code is 0: 3 means that work is left. Archives of another machine lie in
# carry/in, measurements in carry/nitrate, packages that the machine lacks in carry/site (docs/how-to/reproduce.md).
set -euo pipefail
cd "$(dirname "$0")/.."
stage=$1 out=$2 minutes=${3:-9.2}
maps="icmape td3 vdn iql random gp-map gp-map-top6 gp-map-top20"

case $stage in
maps) settings="signal nitrate nitrate-n1" methods=$maps ;;
thompson) settings="signal nitrate nitrate-n1" methods="$maps thompson thompson-paper" ;;
bandit) settings="a3p5" methods="vdn iql environment no-cost td3-slow td3-follow td3-follow-slow" ;;
*) echo "stages: maps, thompson, bandit" >&2 && exit 2 ;;
esac

export PYTHONPATH=".:carry/site" PYTHONUNBUFFERED=1
unpack=()
if [ -d "carry/in" ]; then unpack=(--unpack carry/in); fi
# archives hold 60 MiB: the bandit's results have a folder of their own
# shellcheck disable=SC2086  # lists of words
exec python3 -m paper $settings --train --fresh --data carry/nitrate --methods $methods \
    --out "runs/lent-${stage/thompson/maps}" "${unpack[@]}" --minutes "$minutes" --pack "$out"
