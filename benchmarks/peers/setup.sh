#!/usr/bin/env bash
# Makes the virtual environment of a peer.
# Usage: bash benchmarks/peers/setup.sh pytorch|ctranslate2|joeynmt FOLDER
# (KerasHub and the TensorFlow tutorial run in this package's own, installed
# with the extra `bench`.)
set -euo pipefail
name="$1" folder="$2"

"${PYTHON:-python3}" -m venv "$folder"
install() { "$folder/bin/pip" install "$@"; }

case "$name" in
pytorch) install "torch==2.13.0" numpy ;;
ctranslate2) install "ctranslate2==4.8.5" numpy ;;
joeynmt)
    install "torch==2.13.0"
    # It pins old versions of what it needs; newer ones do.
    install --no-deps "joeynmt==2.3.0"
    install numpy pandas pyyaml tqdm packaging importlib_metadata \
        tensorboard matplotlib seaborn sacrebleu sentencepiece subword-nmt
    ;;
*)
    echo "Expected pytorch, ctranslate2 or joeynmt. Received: $name" >&2
    exit 2
    ;;
esac
