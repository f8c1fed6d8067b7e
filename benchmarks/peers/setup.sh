#!/usr/bin/env bash
# Makes the virtual environment of a peer.
# Usage: bash benchmarks/peers/setup.sh NAME FOLDER
# NAME is pytorch, ctranslate2, joeynmt or opennmt_tf; the last needs
# Python 3.10: PYTHON=python3.10 bash ...
# Servers and their clients are triton, litserve, min_tfs_client and kserve.
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
opennmt_tf)
    install "OpenNMT-tf==2.32.0" "tensorflow==2.13.1" \
        "tensorflow-addons==0.21.0" "numpy==1.24.3"
    ;;
triton) install "nvidia-pytriton==0.7.0" "tensorflow>=2.21,<2.22" \
    "tensorflow-text>=2.21.1,<2.22" ;;
litserve) install "litserve==0.2.19" "tensorflow>=2.21,<2.22" \
    "tensorflow-text>=2.21.1,<2.22" ;;
min_tfs_client) install "min-tfs-client==1.0.2" "protobuf<3.21" ;;
kserve) install "kserve==0.21.0" ;;
*)
    echo "Expected pytorch, ctranslate2, joeynmt, opennmt_tf, triton," \
        "litserve, min_tfs_client or kserve. Received: $name" >&2
    exit 2
    ;;
esac
