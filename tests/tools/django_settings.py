"""Settings with which tests/tools/django.sh runs Django's own tests; TOOLS_SOCKET is the private server's."""
import os
_base = {
    "ENGINE": "django.db.backends.mysql",
    "USER": "root",
    "HOST": os.environ["TOOLS_SOCKET"],
    "TEST": {"CHARSET": "utf8mb4", "COLLATION": "utf8mb4_general_ci"},
}
DATABASES = {"default": {**_base, "NAME": "django"}, "other": {**_base, "NAME": "django2"}}
SECRET_KEY = "django_tests_secret_key"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
