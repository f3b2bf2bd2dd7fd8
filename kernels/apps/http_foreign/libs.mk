LIBS_http_foreign   := -lm
SHARED_http_foreign := kernels/apps/http_server/load.c kernels/apps/http_server/client.c kernels/apps/http_server/tree.c
