LIBS_file_hash     := -lxxhash -lcrypto
NEEDS_file_hash    := xxhash.h openssl/evp.h
PACKAGES_file_hash := libxxhash-dev libssl-dev
