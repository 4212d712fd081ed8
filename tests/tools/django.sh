#!/usr/bin/env bash
# Django's own tests with an engine as the default one:
#   tests/tools/django.sh [PANDO|InnoDB] [APP ...]
# Without APP: those of django.apps. Prints what Django's runner says; compare.sh runs both engines and compares.
# Everything is installed by the first run, at the versions of django.requirements, into build/tools-work.
set -euo pipefail
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
engine=${1:-PANDO}
shift || true
tools_check_engine "$engine"
read -ra apps <"$tools_here/django.apps"
if [ $# -gt 0 ]; then apps=("$@"); fi
tools_install django django 5.2.8
tools_server "$engine"
cp "$tools_here/django_settings.py" "$tools_source/tests/pando_settings.py"
cd "$tools_source/tests"
TOOLS_SOCKET=$tools_socket PYTHONPATH=..:. "$tools_python" runtests.py \
    --settings=pando_settings --parallel 1 -v2 --noinput "${apps[@]}"
