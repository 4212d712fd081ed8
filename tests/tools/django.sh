#!/usr/bin/env bash
# Django's own tests with an engine as the default one:
#   tests/tools/django.sh [PANDO|InnoDB] [APP ...]
# Prints what Django's runner says; compare the lines "FAIL:" and "ERROR:" of two runs. Venv and source go to build/tools-work.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
# shellcheck source=scripts/private-server.sh
. "$here/../../scripts/private-server.sh"
engine=${1:-PANDO}
shift || true
read -ra apps <"$here/django.apps"
if [ $# -gt 0 ]; then apps=("$@"); fi
work=$PANDO_BUILD/tools-work
if [ ! -d "$work/django-5.2.8" ]; then
    mkdir -p "$work"
    python3 -m venv "$work/py"
    "$work/py/bin/pip" install -q setuptools wheel mysqlclient==2.2.7 asgiref==3.8.1 sqlparse==0.5.3 tblib==3.0.0 PyYAML==6.0.2 jinja2==3.1.6 Pillow
    "$work/py/bin/pip" download -q --no-binary django --no-deps django==5.2.8 -d "$work/sdist"
    tar xzf "$work/sdist/django-5.2.8.tar.gz" -C "$work"
fi
server_auto_stop
server_temp_dir django
server_start "$REPLY" --default-storage-engine="$engine"
cp "$here/django_settings.py" "$work/django-5.2.8/tests/pando_settings.py"
cd "$work/django-5.2.8/tests"
TOOLS_SOCKET=$(server_socket "$REPLY") PYTHONPATH=..:. "$work/py/bin/python" runtests.py \
    --settings=pando_settings --parallel 1 -v2 --noinput "${apps[@]}"
