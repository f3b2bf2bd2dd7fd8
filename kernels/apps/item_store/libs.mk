LIBS_item_store     := -lmicrohttpd -lpq -ljansson
NEEDS_item_store    := microhttpd.h postgresql/libpq-fe.h jansson.h
PACKAGES_item_store := libmicrohttpd-dev libpq-dev libjansson-dev
