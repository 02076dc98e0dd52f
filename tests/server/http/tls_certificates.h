#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace tandem::http {

// A key and a certificate made for one test, also as PEM files.
struct Certificate {
  std::shared_ptr<EVP_PKEY> key;
  std::shared_ptr<X509> certificate;
  std::string key_file, certificate_file;
};

struct CertificateContents {
  std::string alternative_names;           // "DNS:localhost,IP:127.0.0.1"; empty: none.
  long begins_in = -3600, ends_in = 3600;  // Seconds.
};

// Signed by `issuer`, or by itself when that is null.
inline Certificate MakeCertificate(const std::filesystem::path& folder, const std::string& name,
                                   const Certificate* issuer = nullptr, const CertificateContents& contents = {}) {
  Certificate made;
  made.key.reset(EVP_EC_gen("P-256"), EVP_PKEY_free);
  made.certificate.reset(X509_new(), X509_free);
  X509* x509 = made.certificate.get();
  X509_set_version(x509, X509_VERSION_3);
  static long serial = 1;
  ASN1_INTEGER_set(X509_get_serialNumber(x509), serial++);
  X509_gmtime_adj(X509_getm_notBefore(x509), contents.begins_in);
  X509_gmtime_adj(X509_getm_notAfter(x509), contents.ends_in);
  X509_set_pubkey(x509, made.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(x509, X509_get_subject_name(issuer ? issuer->certificate.get() : x509));
  const auto extend = [x509](int kind, const char* value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value);
    X509_add_ext(x509, extension, -1);
    X509_EXTENSION_free(extension);
  };
  extend(NID_basic_constraints, issuer ? "CA:FALSE" : "CA:TRUE");
  if (!contents.alternative_names.empty()) extend(NID_subject_alt_name, contents.alternative_names.c_str());
  X509_sign(x509, issuer ? issuer->key.get() : made.key.get(), EVP_sha256());

  made.key_file = folder / (name + ".key");
  made.certificate_file = folder / (name + ".pem");
  const std::unique_ptr<FILE, int (*)(FILE*)> key_file(std::fopen(made.key_file.c_str(), "w"), std::fclose);
  PEM_write_PrivateKey(key_file.get(), made.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(made.certificate_file.c_str(), "w"), std::fclose);
  PEM_write_X509(file.get(), x509);
  return made;
}

}  // namespace tandem::http
